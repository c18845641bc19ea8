# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""What each sample is worth against the others of its prompt.

Contract: a sample without a valid reward is in no mean and no deviation; whether a sample is live
does not matter here. A group that cannot teach is dropped with its reason, never passed over.

Sources: GRPO arXiv 2402.03300, RLOO 2402.14740, REINFORCE++ with baseline 2501.03262, MaxRL by
RECIPE §3 (the mean in place of the deviation).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

import torch
from torch import Tensor

from rltrain.objective.groups import Groups
from rltrain.objective.types import Samples

type Name = Literal["grpo", "rloo", "maxrl", "reinforce_pp"]
type Reason = Literal["few_valid", "no_variance"]

NO_VARIANCE: Final = 1e-6
"""A range of rewards up to this teaches nothing."""
FEW: Final = 2
"""Fewer valid samples have no baseline."""
EPSILON: Final = 1e-6
"""Beside a deviation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvantageConfig:
    """How samples are compared."""

    name: Name = "grpo"
    deviation: bool = False
    """Of ``grpo``: divide by the group's deviation, which weighs easy and hard prompts more."""

    def __post_init__(self) -> None:
        if self.name not in ESTIMATORS:
            raise ValueError(f"name: there is no {self.name!r}; there are {', '.join(ESTIMATORS)}")
        if self.deviation and self.name != "grpo":
            raise ValueError(f"deviation: {self.name} has none; it is an option of grpo")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Advantages:
    """What came of it."""

    values: Tensor
    """``[N]``; zero for samples that are not valid, and in dropped groups."""
    kept: Tensor
    """Bool ``[N]``: of a group that is trained on."""
    dropped: Mapping[int, Reason]
    """By group."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Centred:
    """Rewards less the means of their groups, and what they were made of."""

    values: Tensor
    """``[N]``, zero where the sample does not count."""
    counts: Tensor
    """Bool ``[N]``: valid, and of a group that is kept."""
    groups: Groups
    number: Tensor
    """``[G]``: how many count."""
    mean: Tensor
    """``[G]``"""


class NotAboveZero(ValueError):
    """``maxrl`` meets a group whose mean reward is not above zero."""

    def __init__(self, group: object) -> None:
        super().__init__(
            f"maxrl divides by the mean reward, and that of group {group} is not above 0"
        )


type Estimator = Callable[[Centred, AdvantageConfig], Tensor]


def advantages(config: AdvantageConfig, samples: Samples) -> Advantages:
    """What each sample is worth: reckoned in float64, told in the rewards' own type.

    Raises:
        NotAboveZero: ``maxrl`` meets a group whose mean is not above zero.
    """
    groups = Groups.of(samples.group)
    rewards = samples.rewards.masked_fill(~samples.valid, 0.0).double()
    number = groups.sum(samples.valid.to(rewards.dtype))
    few = number < FEW
    flat = ~few & (groups.range(rewards, samples.valid) <= NO_VARIANCE)
    kept = groups.each(~(few | flat))
    centred = _centred(rewards, samples.valid & kept, groups)
    dropped: dict[int, Reason] = dict.fromkeys(groups.names[few].tolist(), "few_valid")
    dropped |= dict.fromkeys(groups.names[flat].tolist(), "no_variance")
    values = ESTIMATORS[config.name](centred, config).to(samples.rewards.dtype)
    return Advantages(values=values, kept=kept, dropped=MappingProxyType(dropped))


def _centred(rewards: Tensor, counts: Tensor, groups: Groups) -> Centred:
    number = groups.sum(counts.to(rewards.dtype))
    mean = groups.sum(rewards * counts) / number.clamp(min=1.0)
    return Centred(
        values=(rewards - groups.each(mean)).masked_fill(~counts, 0.0),
        counts=counts,
        groups=groups,
        number=number,
        mean=mean,
    )


def _grpo(centred: Centred, config: AdvantageConfig) -> Tensor:
    if not config.deviation:
        return centred.values
    squares = centred.groups.sum(centred.values**2) / centred.number.clamp(min=1.0)
    return centred.values / (centred.groups.each(squares.sqrt()) + EPSILON)


def _rloo(centred: Centred, _: AdvantageConfig) -> Tensor:
    """R_i less the mean of the others is n/(n-1) of R_i less the mean of all."""
    number = centred.groups.each(centred.number)
    return centred.values * number / (number - 1.0).clamp(min=1.0)


def _maxrl(centred: Centred, _: AdvantageConfig) -> Tensor:
    bad = (centred.number > 0) & (centred.mean <= 0)
    if bool(bad.any()):
        raise NotAboveZero(centred.groups.names[bad][0].item())
    mean = centred.groups.each(centred.mean)
    return centred.values / torch.where(centred.counts, mean, 1.0)


def _reinforce_pp(centred: Centred, _: AdvantageConfig) -> Tensor:
    """By the deviation of the whole batch."""
    number = centred.counts.sum().clamp(min=1)
    mean = centred.values.sum() / number
    squares = ((centred.values - mean) ** 2).masked_fill(~centred.counts, 0.0).sum() / number
    return centred.values / (squares.sqrt() + EPSILON)


ESTIMATORS: Final[Mapping[str, Estimator]] = MappingProxyType(
    {"grpo": _grpo, "rloo": _rloo, "maxrl": _maxrl, "reinforce_pp": _reinforce_pp}
)
