# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Losses without a clip: the window of GLM-5, and plain policy gradient.

Source: RECIPE §4.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from rltrain.objective.loss.ratio import ratio_of
from rltrain.objective.types import Judged, Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Glm5:
    """-sg[f(r)] A l, where f(r) is r inside a window and 0 outside of it, on both sides."""

    eps_low: float = 0.5
    eps_high: float = 4.0

    def __call__(self, tokens: Tokens) -> Judged:
        ratio = ratio_of(tokens)
        step = ratio.fixed
        outside = ~((step > 1.0 - self.eps_low) & (step < 1.0 + self.eps_high)) & ratio.mask
        step = torch.where(outside, 0.0, step)
        return Judged(value=ratio.only(-step * ratio.advantage * ratio.logp), masked=outside)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reinforce:
    """-A l, as if the samples were the policy's own of this moment."""

    def __call__(self, tokens: Tokens) -> Judged:
        ratio = ratio_of(tokens)
        return Judged(
            value=ratio.only(-ratio.advantage * ratio.logp), masked=torch.zeros_like(ratio.mask)
        )
