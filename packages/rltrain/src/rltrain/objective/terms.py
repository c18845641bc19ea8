# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""KL to a reference policy and entropy, per token; they carry the policy term's weights."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rltrain.objective.loss.ratio import CLAMP


@dataclass(frozen=True, slots=True, kw_only=True)
class TermsConfig:
    """What is added to the policy term."""

    kl: float = 0.0
    """Times the KL to the reference; 0 needs no reference."""
    entropy: float = 0.0
    """Times the entropy, which is taken off."""

    def __post_init__(self) -> None:
        for name in ("kl", "entropy"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}: {getattr(self, name):g} is below 0")


def kl_to(reference: Tensor, logp: Tensor, mask: Tensor) -> Tensor:
    """exp(d) - d - 1 with d = reference - logp: never negative, with the gradient through ``logp``.

    ``[T]``, nats; zero where the mask is not set. Source: joschu.net/blog/kl-approx.html, k3.
    """
    here = torch.where(mask, logp, 0.0)
    there = torch.where(mask, reference.detach().to(here.dtype), 0.0)
    difference = (there - here).clamp(-CLAMP, CLAMP)
    return difference.exp() - difference - 1.0
