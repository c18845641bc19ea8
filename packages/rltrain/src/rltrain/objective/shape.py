# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Options on rewards and flags that did not help where they were published, to be compared with.

Sources: overlong filtering of DAPO arXiv 2503.14476; adaptive length penalty arXiv 2506.05256, with
tokens of the model and of the environment apart as RECIPE §4 has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from rltrain.objective.groups import Groups
from rltrain.objective.types import Samples

OVERLONG: Final = frozenset({"context", "length"})
"""Stops of samples that were cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthPenalty:
    """How much of a reward long samples lose: more where the prompt is easy."""

    model: float = 0.0
    """Times the share of the longest sample that the model's tokens are."""
    environment: float = 0.0
    """Times that of what it was shown."""
    longest: int = 0
    """Tokens that count as 1."""

    def __post_init__(self) -> None:
        if (self.model or self.environment) and self.longest < 1:
            raise ValueError("longest: a length penalty needs it above 0")


def not_overlong(live: Tensor, stops: Sequence[str]) -> Tensor:
    """``[N]``: live, and not cut off; whether its reward counts for others is left alone."""
    cut = torch.tensor([each in OVERLONG for each in stops], dtype=torch.bool, device=live.device)
    return live & ~cut


def penalised(config: LengthPenalty, samples: Samples, environment: Tensor) -> Tensor:
    """Rewards ``[N]``; ``environment`` is how many tokens of each sample the model was shown."""
    if not (config.model or config.environment):
        return samples.rewards
    groups = Groups.of(samples.group)
    rewards = samples.rewards.masked_fill(~samples.valid, 0.0)
    number = groups.sum(samples.valid.to(rewards.dtype)).clamp(min=1.0)
    solved = (groups.sum(rewards) / number).clamp(0.0, 1.0)
    share = torch.maximum(solved, 1.0 / number)
    own, shown = samples.tokens.to(rewards.dtype), environment.to(rewards.dtype)
    lengths = config.model * own + config.environment * shown
    cost = groups.each(share) * lengths / config.longest
    return torch.where(samples.valid, rewards - cost, samples.rewards)
