# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""DPPO: a step is taken unless the policy has moved too far, by a divergence and not by the ratio.

ell = -sg[min(r, cap) M] A l. M is 0 only where the step would lead further away: up where the token
is already likelier than in the rollout, down where it is less likely.

Source: arXiv 2602.04879; RECIPE §4.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rltrain.objective.loss.ratio import Ratio, ratio_of
from rltrain.objective.types import Alternatives, Judged, Tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Dppo:
    """By total variation of the one token: \\|pi - pi_mu\\|."""

    delta_low: float = 0.2
    """How much less likely a token may get; of probability."""
    delta_high: float = 0.2
    """How much likelier."""
    cap: float = 10.0
    """Of the ratio: a rare token is never masked."""

    def __call__(self, tokens: Tokens) -> Judged:
        ratio = ratio_of(tokens)
        further = ratio.probability - ratio.rollout_probability
        return _stepped(ratio, _outside(self, ratio, further, further.abs()), self.cap)


@dataclass(frozen=True, slots=True, kw_only=True)
class DppoKl:
    """By KL(rollout, policy) of the one token against all others."""

    delta: float = 0.05
    """Nats."""
    cap: float = 10.0

    def __call__(self, tokens: Tokens) -> Judged:
        ratio = ratio_of(tokens)
        further = ratio.probability - ratio.rollout_probability
        far = binary_kl(ratio) > self.delta
        return _stepped(ratio, far & (ratio.advantage * further > 0), self.cap)


@dataclass(frozen=True, slots=True, kw_only=True)
class DppoTopk:
    """By total variation over the best tokens of the rollout, the sampled one, and all the rest.

    Needs alternatives in the trajectory, and the trainer's log-probs of them.
    """

    delta_low: float = 0.2
    delta_high: float = 0.2
    cap: float = 10.0

    def __call__(self, tokens: Tokens) -> Judged:
        if tokens.alternatives is None or tokens.ids is None:
            raise ValueError("dppo_topk needs alternatives: sample with top_logprobs")
        ratio = ratio_of(tokens)
        further = ratio.probability - ratio.rollout_probability
        divergence = variation(ratio, tokens.ids, tokens.alternatives)
        return _stepped(ratio, _outside(self, ratio, further, divergence), self.cap)


def binary_kl(ratio: Ratio) -> Tensor:
    """KL of the sampled token against all others, rollout to policy. ``[T]``, nats.

    1 - pi by expm1: in float32 the difference of a likely token is nothing but rounding.
    """
    logp, rollout = ratio.logp.detach(), ratio.rollout
    kept = rollout.exp() * (rollout - logp)
    rest, rest_policy = -torch.expm1(rollout), (-torch.expm1(logp)).clamp(min=0.0)
    others = rest * (rest.log() - rest_policy.log())
    return kept + torch.where(rest > 0, others, 0.0)


def variation(ratio: Ratio, ids: Tensor, alternatives: Alternatives) -> Tensor:
    """Half of the sum of differences over the buckets. ``[T]``"""
    counted = (alternatives.ids >= 0) & (alternatives.ids != ids[:, None]) & ratio.mask[:, None]
    policy = torch.where(counted, alternatives.policy.detach().to(ratio.logp.dtype).exp(), 0.0)
    rollout = torch.where(counted, alternatives.rollout.to(ratio.logp.dtype).exp(), 0.0)
    here, before = ratio.probability, ratio.rollout_probability
    rest = (1.0 - here - policy.sum(-1)).clamp(min=0.0)
    rest_before = (1.0 - before - rollout.sum(-1)).clamp(min=0.0)
    listed = (policy - rollout).abs().sum(-1)
    return 0.5 * ((here - before).abs() + listed + (rest - rest_before).abs())


def _outside(config: Dppo | DppoTopk, ratio: Ratio, further: Tensor, divergence: Tensor) -> Tensor:
    up = (ratio.advantage > 0) & (further > 0) & (divergence > config.delta_high)
    down = (ratio.advantage < 0) & (further < 0) & (divergence > config.delta_low)
    return up | down


def _stepped(ratio: Ratio, outside: Tensor, cap: float) -> Judged:
    outside = outside & ratio.mask
    step = torch.where(outside, 0.0, ratio.fixed.clamp(max=cap))
    return Judged(value=ratio.only(-step * ratio.advantage * ratio.logp), masked=outside)
