# SPDX-License-Identifier: Apache-2.0
"""From what a launcher said to one record a planned trial.

Contract: every planned trial has a record: those that ended, the broken tasks (as trials that
ended with a task fault before they began), and those that were never reported (as faults of
whatever broke the launcher). Only an interrupted run has fewer:
trials that the interruption cut off never came to an end of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from envkit.fault import Fault, HarnessError, Owner, Phase, TaskError, classify
from envkit.preflight.course import Track
from envkit.preflight.journal import summed
from envkit.preflight.past import NOTHING, Past
from envkit.preflight.types import (
    BrokenTask,
    Event,
    Leftover,
    Plan,
    RunGauges,
    TrialEnded,
    TrialSpec,
)
from envkit.trial.record import Attempt, TrialRecord


@dataclass(slots=True)
class Tally:
    """What was said so far; the only thing that grows during a run."""

    records: dict[str, TrialRecord] = field(default_factory=dict[str, TrialRecord])
    peak_live: int = 0
    peak_memory_mib: float | None = None
    stalls_ms: list[float] = field(default_factory=list[float])
    shared_cpu_s: Mapping[str, float] = field(default_factory=dict[str, float])
    shared_before_s: Mapping[str, float] = field(default_factory=dict[str, float])
    """Of that, what killed processes of the run used."""
    cpu_is_live: bool = True
    track: Track = field(default_factory=Track)

    def take_over(self, past: Past) -> None:
        """Count what was done before this process."""
        for at_s, event in past.told:
            self.add(event, at_s)
        self.records.update(past.records)
        self.shared_before_s = self.shared_cpu_s = past.shared_cpu_s

    def add(self, event: Event, at_s: float) -> None:
        """Count what was said so many seconds after the beginning of the run."""
        self.track.note(at_s, event)
        match event:
            case TrialEnded(record=record):
                self.records[record.trial_id] = record
            case RunGauges():
                self.peak_live = max(self.peak_live, event.live_boxes)
                self.peak_memory_mib = max(self.peak_memory_mib or 0.0, event.memory_mib)
                self.stalls_ms.append(event.loop_stall_ms)
                self.shared_cpu_s = summed(self.shared_before_s, event.shared_cpu_s)
                self.cpu_is_live = event.cpu_is_live
            case _:
                pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a run ended."""

    seconds: float
    """That this process worked on it."""
    leaks: tuple[Leftover, ...] = ()
    broke: Exception | None = None
    interrupted: bool = False
    past: Past = NOTHING
    """What was done before this process, which the tally holds as well."""


def all_records(plan: Plan, tally: Tally, ending: Ending) -> tuple[TrialRecord, ...]:
    """The records of a run, in the order of the plan, broken tasks last."""
    ended = [tally.records[s.trial_id] for s in plan.specs if s.trial_id in tally.records]
    broken = [broken_record(task, plan) for task in plan.broken]
    if ending.interrupted:
        return (*(record for record in ended if not _cut_off(record)), *broken)
    lost = [_lost_record(s, ending) for s in plan.specs if s.trial_id not in tally.records]
    return (*ended, *lost, *broken)


def _cut_off(record: TrialRecord) -> bool:
    return record.fault is not None and record.fault.owner is Owner.CANCELLED


def broken_record(task: BrokenTask, plan: Plan) -> TrialRecord:
    """A task that failed its static checks, as a trial that ended before it began."""
    return _unrun(
        trial_id=task.trial_id,
        task=task.name,
        sample=0,
        agent=plan.agent,
        fault=classify(TaskError("; ".join(task.problems)), Phase.START),
        trial_dir=task.dir,
    )


def _lost_record(spec: TrialSpec, ending: Ending) -> TrialRecord:
    error = ending.broke or HarnessError("the launcher ended without reporting this trial")
    return _unrun(
        trial_id=spec.trial_id,
        task=spec.task_dir.name,
        sample=spec.sample,
        agent=spec.agent,
        fault=classify(error, Phase.RUN),
        trial_dir=spec.out_dir / spec.trial_id,
    )


def _unrun(
    *, trial_id: str, task: str, sample: int, agent: str, fault: Fault, trial_dir: Path
) -> TrialRecord:
    return TrialRecord(
        trial_id=trial_id,
        task=task,
        sample=sample,
        agent=agent,
        attempts=(Attempt(number=1, started_at=0.0, faults=(fault,)),),
        verdict="no_verdict",
        reward=None,
        reward_valid=False,
        fault=fault,
        trial_dir=trial_dir,
        seconds=0.0,
    )
