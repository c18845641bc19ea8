# SPDX-License-Identifier: Apache-2.0
"""Which tasks can be learned from: those whose samples differ in reward."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import pvariance
from typing import Final

from rltrain.evaluate.scores import Scores

CONSTANT: Final = 1e-6
"""A range of rewards up to this teaches nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Tasks of an evaluation, the ones whose rewards vary most first."""

    tasks: tuple[str, ...]
    constant: tuple[str, ...]
    """Tasks that all samples of earned the same on, or that had no two valid ones."""


def by_variance(scores: Scores, most: int) -> Chosen:
    """At most so many; of equals by name, so that the same evaluation gives the same."""
    valid = {
        task: [each for each in row if each is not None] for task, row in scores.rewards.items()
    }
    varies = {
        task: pvariance(row)
        for task, row in valid.items()
        if len(row) > 1 and max(row) - min(row) > CONSTANT
    }
    order = sorted(varies, key=lambda task: (-varies[task], task))
    constant = sorted(task for task in valid if task not in varies)
    return Chosen(tasks=tuple(order[:most]), constant=tuple(constant))
