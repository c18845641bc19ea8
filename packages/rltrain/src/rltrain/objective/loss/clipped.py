# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Losses that clip the ratio: PPO and its kin.

Sources: PPO arXiv 1707.06347, dual clip 1912.09729, CISPO 2506.13585, GSPO 2507.18071, truncated
importance sampling fengyao.notion.site/off-policy-rl.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rltrain.objective.loss.ratio import CLAMP, Ratio, ratio_of, ratio_to
from rltrain.objective.types import Judged, Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Ppo:
    """-min(r A, clip(r) A), with the gradient through r."""

    eps_low: float = 0.2
    eps_high: float = 0.2

    def __call__(self, tokens: Tokens) -> Judged:
        ratio = ratio_of(tokens)
        value, clipped = _pessimistic(ratio.value, ratio.advantage, self.eps_low, self.eps_high)
        return Judged(value=ratio.only(-value), masked=clipped & ratio.mask)


@dataclass(frozen=True, slots=True, kw_only=True)
class PpoDualClip:
    """As PPO; where A < 0 no more is lost than ``dual`` times A."""

    eps_low: float = 0.2
    eps_high: float = 0.2
    dual: float = 3.0
    """Above 1."""

    def __post_init__(self) -> None:
        if self.dual <= 1:
            raise ValueError(f"dual: {self.dual:g} is not above 1")

    def __call__(self, tokens: Tokens) -> Judged:
        ratio = ratio_of(tokens)
        value, clipped = _pessimistic(ratio.value, ratio.advantage, self.eps_low, self.eps_high)
        bound = self.dual * ratio.advantage
        beyond = (ratio.advantage < 0) & (bound > value)
        return Judged(
            value=ratio.only(-torch.where(beyond, bound, value)),
            masked=(clipped | beyond) & ratio.mask,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cispo:
    """-sg[clip(r)] A l: every token keeps a gradient, none a large one."""

    eps_low: float = 0.2
    eps_high: float = 0.28

    def __call__(self, tokens: Tokens) -> Judged:
        ratio = ratio_of(tokens)
        step = ratio.fixed.clamp(1.0 - self.eps_low, 1.0 + self.eps_high)
        return Judged(
            value=ratio.only(-step * ratio.advantage * ratio.logp),
            masked=(step != ratio.fixed) & ratio.mask,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Gspo:
    """As PPO with one ratio a sample: the geometric mean of its tokens'."""

    eps_low: float = 3e-4
    eps_high: float = 4e-4

    def __call__(self, tokens: Tokens) -> Judged:
        ratio = ratio_of(tokens)
        sequence = _sequence_ratio(ratio, tokens)
        value, clipped = _pessimistic(sequence, ratio.advantage, self.eps_low, self.eps_high)
        return Judged(value=ratio.only(-value), masked=clipped & ratio.mask)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tis:
    """PPO against the trainer's own policy before the update, weighted by how far that is from the
    rollout, at most ``cap``. Needs one more forward pass."""

    eps_low: float = 0.2
    eps_high: float = 0.2
    cap: float = 2.0

    def __call__(self, tokens: Tokens) -> Judged:
        if tokens.old is None:
            raise ValueError("tis needs the log-probs before the update")
        ratio = ratio_to(tokens, tokens.old)
        value, clipped = _pessimistic(ratio.value, ratio.advantage, self.eps_low, self.eps_high)
        rollout = torch.where(tokens.mask, tokens.rollout.to(value.dtype), 0.0)
        weight = (ratio.rollout - rollout).clamp(-CLAMP, CLAMP).exp().clamp(max=self.cap)
        return Judged(value=ratio.only(-weight * value), masked=clipped & ratio.mask)


def _pessimistic(
    ratio: Tensor, advantage: Tensor, eps_low: float, eps_high: float
) -> tuple[Tensor, Tensor]:
    """The smaller of r A and clip(r) A, and where that is the clipped one."""
    free = ratio * advantage
    bound = ratio.detach().clamp(1.0 - eps_low, 1.0 + eps_high) * advantage
    clipped = bound < free
    return torch.where(clipped, bound, free), clipped


def _sequence_ratio(ratio: Ratio, tokens: Tokens) -> Tensor:
    """``[T]``: of each token's sample."""
    count = int(tokens.sample.max()) + 1 if len(tokens.sample) else 0
    sums = ratio.logp.new_zeros(count).index_add(0, tokens.sample, ratio.logp - ratio.rollout)
    number = sums.detach().new_zeros(count).index_add(0, tokens.sample, ratio.mask.to(sums.dtype))
    mean = (sums / number.clamp(min=1.0)).clamp(-CLAMP, CLAMP)
    return mean.exp()[tokens.sample]
