# SPDX-License-Identifier: Apache-2.0
"""Whether tasks are worth the same among many trials as among few.

Contract: pure, task by task, over the distinct valid rewards of two sets of records. It means
something of agents that always do the same; two rewards of a model differ by themselves. A task
without a valid reward on one side differs from one that has some.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from envkit.preflight.text import count, one_line
from envkit.preflight.types import Difference
from envkit.trial.record import TrialRecord


def differences(few: Iterable[TrialRecord], many: Iterable[TrialRecord]) -> tuple[Difference, ...]:
    """The tasks that both sides ran and that were not worth the same, by name."""
    left, right = _rewards(few), _rewards(many)
    return tuple(
        Difference(task=task, few=left[task], many=right[task])
        for task in sorted(left.keys() & right.keys())
        if left[task] != right[task]
    )


def difference_line(found: Sequence[Difference], few: str, many: str) -> str:
    """One line naming every task; ``few`` and ``many`` say where the sides ran."""
    each = "; ".join(
        f"{one_line(d.task, 60)} {_worth(d.few)} {few} and {_worth(d.many)} {many}" for d in found
    )
    return f"{count(len(found), 'task')} not worth the same {few} as {many}: {each}"


def _worth(rewards: Sequence[float]) -> str:
    return " or ".join(f"{reward:g}" for reward in rewards) or "nothing valid"


def _rewards(records: Iterable[TrialRecord]) -> dict[str, tuple[float, ...]]:
    found: dict[str, set[float]] = {}
    for record in records:
        of_task = found.setdefault(record.task, set())
        if record.reward_valid and record.reward is not None:
            of_task.add(record.reward)
    return {task: tuple(sorted(rewards)) for task, rewards in found.items()}
