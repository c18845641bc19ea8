# SPDX-License-Identifier: Apache-2.0
"""What an evaluation came to, by task, and whether two of them differ.

Contract: a mean reward is given twice: with invalid trials counted as 0, and without them; beside
them stands their share. Two evaluations of the same tasks are compared task by task, so that how
hard tasks are is in no interval: Student's t over the tasks' differences.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Final, Literal

type Counting = Literal["as_zero", "excluded"]
"""What becomes of trials without a valid reward."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Rewards by task; None is a trial without a valid one."""

    rewards: Mapping[str, Sequence[float | None]]

    @property
    def trials(self) -> int:
        """How many there were."""
        return sum(map(len, self.rewards.values()))

    @property
    def invalid_share(self) -> float:
        """Of all trials."""
        lost = sum(each is None for row in self.rewards.values() for each in row)
        return lost / self.trials if self.trials else math.nan

    def by_task(self, counting: Counting) -> dict[str, float]:
        """The mean of each task; without those that have nothing to count."""
        found = {task: _counted(row, counting) for task, row in self.rewards.items()}
        return {task: fmean(row) for task, row in found.items() if row}

    def mean(self, counting: Counting) -> float:
        """Over tasks, each of which weighs the same."""
        means = self.by_task(counting)
        return fmean(means.values()) if means else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Of two evaluations, over the tasks of both."""

    tasks: int
    mean: float
    low: float
    high: float
    """Of the interval of 95 %."""

    @property
    def rises(self) -> bool:
        """The interval excludes no change."""
        return self.low > 0


def difference(before: Scores, after: Scores, counting: Counting) -> Difference:
    """How much the mean reward of a task rose.

    Raises:
        ValueError: they have fewer than two tasks in common.
    """
    first, second = before.by_task(counting), after.by_task(counting)
    rises = [second[task] - first[task] for task in sorted(first.keys() & second.keys())]
    if len(rises) < 2:
        raise ValueError("fewer than two tasks have a reward in both evaluations")
    half = student(len(rises) - 1) * stdev(rises) / math.sqrt(len(rises))
    mean = fmean(rises)
    return Difference(tasks=len(rises), mean=mean, low=mean - half, high=mean + half)


def student(freedom: int) -> float:
    """The 97.5 % quantile of Student's t."""
    if freedom < len(_SMALL) + 1:
        return _SMALL[freedom - 1]
    z = _NORMAL  # Cornish and Fisher; 1e-4 from 10 degrees on
    return (
        z
        + (z**3 + z) / (4 * freedom)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
    )


_NORMAL: Final = 1.959963984540054
_SMALL: Final = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622)


def _counted(row: Sequence[float | None], counting: Counting) -> list[float]:
    if counting == "as_zero":
        return [each or 0.0 for each in row]
    return [each for each in row if each is not None]
