# SPDX-License-Identifier: Apache-2.0
"""Records summed up: faults by class, seconds by phase, CPU seconds by part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from envkit.fault import Fault, HarnessError, Phase, classify
from envkit.preflight import stats
from envkit.preflight.text import one_line
from envkit.preflight.types import PHASES, FaultRow, Quantiles
from envkit.trial.record import Attempt, TrialRecord


def fault_rows(records: Iterable[TrialRecord]) -> tuple[FaultRow, ...]:
    """Faults by class and owner, the most frequent first; the first of each is its example.

    A class alone says too little: who owns it can depend on where it struck.
    """
    rows: dict[tuple[str, str], FaultRow] = {}
    for record in records:
        for attempt in record.attempts:
            again = attempt is not record.attempts[-1]
            for key, fault in _by_kind(_faults(attempt, again)).items():
                rows[key] = _one_more(rows.get(key) or _row(fault, record, attempt), again)
    return tuple(sorted(rows.values(), key=lambda row: (-row.count, row.code, row.owner)))


def _by_kind(faults: Sequence[Fault]) -> dict[tuple[str, str], Fault]:
    """The first fault of each kind: an attempt counts once in each."""
    return {(fault.code, fault.owner.value): fault for fault in reversed(faults)}


def phase_quantiles(records: Iterable[TrialRecord]) -> dict[str, Quantiles]:
    """Seconds by phase over every attempt, in the order of the phases."""
    seconds: dict[str, list[float]] = {}
    for record in records:
        for attempt in record.attempts:
            for phase, value in attempt.phases.items():
                seconds.setdefault(phase, []).append(value)
    known = [phase for phase in PHASES if phase in seconds]
    names = [*known, *(phase for phase in seconds if phase not in PHASES)]
    measured = {name: stats.quantiles(seconds[name]) for name in names}
    return {name: row for name, row in measured.items() if row is not None}


def cpu_by_part(records: Iterable[TrialRecord]) -> dict[str, float]:
    """CPU seconds of all attempts by part."""
    return _summed(attempt.cpu_s for record in records for attempt in record.attempts)


def cpu_by_phase(records: Iterable[TrialRecord]) -> dict[str, float]:
    """CPU seconds of all attempts by phase, in the order of the phases."""
    total = _summed(attempt.cpu_by_phase for record in records for attempt in record.attempts)
    return {phase: total[phase] for phase in sorted(total, key=_place)}


def _place(phase: str) -> int:
    return PHASES.index(phase) if phase in PHASES else len(PHASES)


def _summed(some: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for each in some:
        for name, seconds in each.items():
            total[name] = total.get(name, 0.0) + seconds
    return total


def _faults(attempt: Attempt, again: bool) -> tuple[Fault, ...]:
    """The attempt's faults; one that was run again has at least one."""
    if attempt.faults or not again:
        return attempt.faults
    return (classify(HarnessError("run again without a fault on its record"), Phase.RUN),)


def _row(fault: Fault, record: TrialRecord, attempt: Attempt) -> FaultRow:
    return FaultRow(
        code=fault.code,
        owner=fault.owner.value,
        count=0,
        retried=0,
        example_trial=record.trial_id,
        example_attempt=attempt.number,
        example_phase=fault.phase.value,
        example_message=one_line(fault.message, 500),
    )


def _one_more(row: FaultRow, again: bool) -> FaultRow:
    return replace(row, count=row.count + 1, retried=row.retried + int(again))
