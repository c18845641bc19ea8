# SPDX-License-Identifier: Apache-2.0
"""What takes the meaning from a reward although no box failed, each as one line of the gate.

Contract: pure. A verifier that pays the same files differently is no measure; a trial that sees
what another made is no sample of its own; a check that was asked for and could not be made is said,
not passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from envkit.fault import Fault, NotIsolated
from envkit.preflight.text import count, one_line
from envkit.trial.record import Attempt, Grade, TrialRecord


def unsound(records: Sequence[TrialRecord]) -> Iterator[str]:
    """The breaches, in the order a person should look at them; empty lines for what holds."""
    yield _interference(records)
    yield _unsearched(records)
    yield _flaky(records)
    yield _ungraded(records)


def held(records: Sequence[TrialRecord]) -> Iterator[str]:
    """What was looked at and found sound, for a PASS; nothing where nothing was."""
    twice = sum(len(_graded_twice(record)) for record in records)
    if twice:
        yield f"{count(twice, 'trial')} graded twice, with the same rewards"
    searched = sum(attempt.searched for record in records for attempt in record.attempts)
    if searched:
        yield f"boxes searched {count(searched, 'time')}, no mark of another trial in one"


def checks(records: Sequence[TrialRecord]) -> dict[str, Any]:
    """The same as figures and trial ids, JSON-ready."""
    attempts = [attempt for record in records for attempt in record.attempts]
    return {
        "graded_twice": sum(bool(attempt.grades) for attempt in attempts),
        "graded_differently": [r.trial_id for r in records if _flaky([r])],
        "graded_once_only": [r.trial_id for r in records if _ungraded([r])],
        "boxes_searched": sum(attempt.searched for attempt in attempts),
        "searches_failed": sum(attempt.unsearched for attempt in attempts),
        "saw_another_trial": [r.trial_id for r in records if _interference([r])],
    }


def is_unsound(record: TrialRecord) -> bool:
    """Whether a trial's own verifier disagrees with itself or could not be asked twice."""
    return bool(_flaky([record]) or _ungraded([record]))


def _interference(records: Sequence[TrialRecord]) -> str:
    seen = [r for r in records if any(f.code == NotIsolated.__name__ for f in _faults(r))]
    if not seen:
        return ""
    example = next(f for f in _faults(seen[0]) if f.code == NotIsolated.__name__)
    return (
        f"{count(len(seen), 'trial')} saw what another trial made: {_named(seen)}; "
        f"{one_line(example.message, 200)}"
    )


def _unsearched(records: Sequence[TrialRecord]) -> str:
    """Of a trial that faulted, the box may be gone, be it by its own model; else it was there."""
    clean = (r for r in records if r.reward_valid and r.fault is None)
    missed = [r for r in clean if r.attempts[-1].unsearched]
    if not missed:
        return ""
    return (
        f"boxes of {count(len(missed), 'trial')} could not be searched for what other trials "
        f"made: {_named(missed)}"
    )


def _flaky(records: Sequence[TrialRecord]) -> str:
    paid = [(r, a.grades) for r in records for a in _graded_twice(r) if differ(a.grades)]
    if not paid:
        return ""
    each = ", ".join(f"{one_line(r.trial_id, 80)} ({_worth(grades)})" for r, grades in paid)
    line = f"the verifier of {count(len({r.task for r, _ in paid}), 'task')} paid the same files"
    return f"{line} differently the second time: {each}; correct its tests/"


def _ungraded(records: Sequence[TrialRecord]) -> str:
    failed = {
        r.trial_id: grade.fault.code
        for r in records
        for attempt in _graded_twice(r)
        for grade in attempt.grades
        if grade.fault
    }
    if not failed:
        return ""
    each = ", ".join(f"{one_line(trial, 80)} ({code})" for trial, code in failed.items())
    return f"the second grading of {count(len(failed), 'trial')} failed: {each}"


def _faults(record: TrialRecord) -> list[Fault]:
    return [fault for attempt in record.attempts for fault in attempt.faults]


def _graded_twice(record: TrialRecord) -> list[Attempt]:
    return [attempt for attempt in record.attempts if attempt.grades]


def differ(grades: Sequence[Grade]) -> bool:
    """In any named reward: a criterion that flips is as little a measure as the whole."""
    return len({tuple(sorted(g.rewards.items())) for g in grades if g.fault is None}) > 1


def _worth(grades: Sequence[Grade]) -> str:
    return ", then ".join(f"{grade.reward:g}" for grade in grades if grade.reward is not None)


def _named(records: Sequence[TrialRecord], most: int = 5) -> str:
    names = ", ".join(one_line(record.trial_id, 80) for record in records[:most])
    return names if len(records) <= most else f"{names} and {len(records) - most} more"
