# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""How far the policy is from the rollout at each token.

Contract: everything is float32, or float64 where log-probs come so; a difference of logs is clamped
to 20 before it is exponentiated; tokens that are not trained on are as if both agreed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from rltrain.objective.types import Tokens

CLAMP: Final = 20.0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Ratio:
    """Tensors are ``[T]``."""

    logp: Tensor
    """l, with its gradient; 0 where the mask is not set."""
    rollout: Tensor
    """mu"""
    difference: Tensor
    """l - mu, clamped, with its gradient."""
    advantage: Tensor
    mask: Tensor

    @property
    def value(self) -> Tensor:
        """r = exp(l - mu)."""
        return self.difference.exp()

    @property
    def fixed(self) -> Tensor:
        """r without its gradient."""
        return self.difference.detach().exp()

    @property
    def probability(self) -> Tensor:
        """pi, without its gradient."""
        return self.logp.detach().exp()

    @property
    def rollout_probability(self) -> Tensor:
        """pi_mu"""
        return self.rollout.exp()

    def only(self, values: Tensor) -> Tensor:
        """Zero where the mask is not set."""
        return torch.where(self.mask, values, 0.0)


def ratio_of(tokens: Tokens) -> Ratio:
    """The ratio of the policy to the rollout."""
    return ratio_to(tokens, tokens.rollout)


def ratio_to(tokens: Tokens, other: Tensor) -> Ratio:
    """The ratio of the policy to other log-probs of the same tokens."""
    logp = torch.where(tokens.mask, _floating(tokens.logp), 0.0)
    rollout = torch.where(tokens.mask, other.detach().to(logp.dtype), 0.0)
    return Ratio(
        logp=logp,
        rollout=rollout,
        difference=(logp - rollout).clamp(-CLAMP, CLAMP),
        advantage=tokens.advantage.to(logp.dtype),
        mask=tokens.mask,
    )


def _floating(logp: Tensor) -> Tensor:
    return logp if logp.dtype == torch.float64 else logp.float()
