# SPDX-License-Identifier: Apache-2.0
"""One row a trial, in the report itself: what a later run is compared with.

Contract: plain figures that survive JSON without loss; seconds, CPU seconds, MiB. Seconds by phase
are those of an attempt that did not fault, because one that was cut short says nothing about how
long a phase takes; all other figures are over every attempt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from envkit.preflight import slots
from envkit.preflight.gate import count_faulted, faulted
from envkit.preflight.types import Plan, Report
from envkit.trial.load import NO_LOAD
from envkit.trial.record import TrialRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one trial came to."""

    trial: str
    task: str
    concurrency: int
    """Of the run, or of its level of a ramp."""
    reward: float | None
    """None where it is not valid."""
    attempts: int
    faulted: int
    """Of the attempts."""
    seconds: float
    """For which it took a slot."""
    phases: Mapping[str, float]
    cpu_s: float
    memory_mib: float


def outcomes(report: Report) -> list[Outcome]:
    """The trials of a report that were begun, in its order."""
    levels = report.ramp.levels if report.ramp else ()
    at = {trial: level.concurrency for level in levels for trial in level.trials}
    usual = report.plan.concurrency if report.plan else 0
    return [
        _outcome(record, at.get(record.trial_id, usual))
        for record in report.records
        if record.attempts and record.attempts[0].started_at > 0
    ]


def load_of(plan: Plan) -> dict[str, Any]:
    """What of the load inside a trial decides how long it takes; the same in all trials."""
    load = plan.specs[0].load if plan.specs else NO_LOAD
    return {"think": load.think, "hold_s": load.hold_s}


def to_rows(rows: Sequence[Outcome]) -> list[dict[str, Any]]:
    """JSON-ready."""
    return [asdict(row) for row in rows]


def from_rows(rows: Sequence[Mapping[str, Any]]) -> list[Outcome]:
    """Read back :func:`to_rows`; what later versions added is passed over.

    Raises:
        KeyError, TypeError, ValueError: a figure is missing or is none.
    """
    return [
        Outcome(
            trial=str(row["trial"]),
            task=str(row["task"]),
            concurrency=int(row["concurrency"]),
            reward=None if row["reward"] is None else float(row["reward"]),
            attempts=int(row["attempts"]),
            faulted=int(row["faulted"]),
            seconds=float(row["seconds"]),
            phases={str(name): float(value) for name, value in row["phases"].items()},
            cpu_s=float(row["cpu_s"]),
            memory_mib=float(row["memory_mib"]),
        )
        for row in rows
    ]


def _outcome(record: TrialRecord, concurrency: int) -> Outcome:
    bad, attempts = count_faulted([record])
    last = record.attempts[-1]
    return Outcome(
        trial=record.trial_id,
        task=record.task,
        concurrency=concurrency,
        reward=record.reward if record.reward_valid else None,
        attempts=attempts,
        faulted=bad,
        seconds=slots.slot_s(record),
        phases={} if faulted(last, last=True) else slots.own_phases(last),
        cpu_s=slots.cpu_s(record),
        memory_mib=slots.peak_memory_mib(record),
    )
