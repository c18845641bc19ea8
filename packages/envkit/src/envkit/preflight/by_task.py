# SPDX-License-Identifier: Apache-2.0
"""The records of a run, task by task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from envkit.preflight import stats
from envkit.preflight.gate import count_faulted
from envkit.preflight.slots import slot_s
from envkit.preflight.soundness import checks
from envkit.preflight.types import TaskRow
from envkit.trial.record import TrialRecord


def task_rows(records: Iterable[TrialRecord]) -> tuple[TaskRow, ...]:
    """One row a task, by name."""
    by_task: dict[str, list[TrialRecord]] = {}
    for record in records:
        by_task.setdefault(record.task, []).append(record)
    return tuple(_row(task, by_task[task]) for task in sorted(by_task))


def _row(task: str, records: Sequence[TrialRecord]) -> TaskRow:
    valid = Counter(r.reward for r in records if r.reward_valid and r.reward is not None)
    begun = [r for r in records if r.attempts and r.attempts[0].started_at > 0]
    checked = checks(records)
    return TaskRow(
        task=task,
        trials=len(records),
        rewards=tuple(sorted(valid.items())),
        seconds=stats.quantiles([slot_s(record) for record in begun]),
        faulted=count_faulted(records)[0],
        graded_twice=checked["graded_twice"],
        graded_differently=len(checked["graded_differently"]),
    )
