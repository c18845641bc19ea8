# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""What every sample of a batch is worth and how much each of its tokens weighs.

Contract: this is done once, for the whole batch, before anything is cut; micro-batches and ranks
only carry the numbers. A group that cannot teach is dropped, with its reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from rltrain.batch.sample import Sample
from rltrain.batch.source import Group
from rltrain.objective.advantage import NotAboveZero, Reason, advantages
from rltrain.objective.aggregate import token_weights
from rltrain.objective.config import ObjectiveConfig
from rltrain.objective.shape import not_overlong, penalised
from rltrain.objective.types import Samples

type Undone = Reason | Literal["not_live"]
"""Why no step is taken on a group."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Stamped:
    """A batch with its numbers. Tensors are ``[N]``, float64."""

    samples: Sequence[Sample]
    advantage: Tensor
    weight: Tensor
    """Of each trained token; zero where the sample is not trained on."""
    dropped: Mapping[str, Reason]
    """Groups, by their ids."""

    @property
    def trained(self) -> list[int]:
        """Which samples are trained on."""
        return torch.nonzero(self.weight > 0).flatten().tolist()


def stamp(config: ObjectiveConfig, samples: Sequence[Sample]) -> Stamped:
    """Weigh the samples of a batch.

    Raises:
        ValueError: the estimator does not take these rewards.
    """
    names = sorted({each.group_id for each in samples})
    counted = _counted(samples, {name: number for number, name in enumerate(names)})
    shown = torch.tensor([each.environment_tokens for each in samples], dtype=torch.int64)
    counted = replace(counted, rewards=penalised(config.length_penalty, counted, shown))
    found = advantages(config.advantage, counted)
    live = counted.live & found.kept
    if config.overlong_filter:
        live = not_overlong(live, [each.stop.value for each in samples])
    weight = token_weights(config.aggregate, replace(counted, live=live))
    return Stamped(
        samples=samples,
        advantage=found.values,
        weight=weight,
        dropped={names[group]: reason for group, reason in found.dropped.items()},
    )


def teachable(
    config: ObjectiveConfig, groups: Sequence[Group]
) -> tuple[list[Group], dict[str, Undone]]:
    """Groups of recorded rows that steps are taken on, and why the others are not.

    An overlong filter leaves out samples, and no group: the step of one is taken on the others.

    Raises:
        NotAboveZero: the estimator does not take the rewards of a group, which it names.
    """
    dropped: dict[str, Undone] = {}
    for each in groups:
        if not any(row.live and row.trained for row in each.rows):
            dropped[each.name] = "not_live"
        elif reason := _flat(config, each):
            dropped[each.name] = reason
    return [each for each in groups if each.name not in dropped], dropped


def _flat(config: ObjectiveConfig, group: Group) -> Reason | None:
    """Why a group by itself has nothing to compare."""
    rewards = [float("nan") if row.reward is None else row.reward for row in group.rows]
    counted = Samples(
        rewards=torch.tensor(rewards, dtype=torch.float64),
        valid=torch.tensor([row.valid for row in group.rows]),
        live=torch.tensor([row.live for row in group.rows]),
        group=torch.zeros(len(group.rows), dtype=torch.int64),
        tokens=torch.tensor([row.trained for row in group.rows]),
    )
    shown = torch.tensor([row.environment_tokens for row in group.rows])
    counted = replace(counted, rewards=penalised(config.length_penalty, counted, shown))
    try:
        return advantages(config.advantage, counted).dropped.get(0)
    except NotAboveZero as error:
        raise NotAboveZero(group.name) from error


def _counted(samples: Sequence[Sample], number: Mapping[str, int]) -> Samples:
    rewards = [float("nan") if each.reward is None else each.reward for each in samples]
    return Samples(
        rewards=torch.tensor(rewards, dtype=torch.float64),
        valid=torch.tensor([each.valid for each in samples], dtype=torch.bool),
        live=torch.tensor([each.live for each in samples], dtype=torch.bool),
        group=torch.tensor([number[each.group_id] for each in samples], dtype=torch.int64),
        tokens=torch.tensor([each.trained for each in samples], dtype=torch.int64),
    )
