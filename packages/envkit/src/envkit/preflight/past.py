# SPDX-License-Identifier: Apache-2.0
"""What the killed processes of a run had done: taken over, so that nothing that ended is repeated.

Contract: a trial ended if its record is there, and an attempt if it was taken in by the process
that is gone. Whatever else lies among the trials was under way: it is moved aside, out of the way
of its repetition, and is never read again, whatever it says of itself.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson

from envkit.preflight.journal import read_journal
from envkit.preflight.text import count
from envkit.preflight.types import Event, Plan, TrialSpec
from envkit.trial.record import (
    RECORD_NAME,
    TAKEN_NAME,
    Attempt,
    TrialRecord,
    attempt_from_dict,
    read_record,
)
from envkit.trial.request import attempt_name

CUT_OFF: Final = "cut-off"
"""Under the run's directory: what was under way at each kill, a directory each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What of a run is done before this process begins."""

    resumed: int = 0
    """How often the run was taken up again, by this process too."""
    cut_off: int = 0
    """Attempts that were under way at a kill, over all of them."""
    seconds: float = 0.0
    """That earlier processes worked on it."""
    records: Mapping[str, TrialRecord] = field(default_factory=dict[str, TrialRecord])
    """Of the trials that ended."""
    earlier: Mapping[str, tuple[Attempt, ...]] = field(
        default_factory=dict[str, tuple[Attempt, ...]]
    )
    """Attempts that ended, of trials that did not."""
    told: tuple[tuple[float, Event], ...] = ()
    """Gauges and phases, with the seconds of work on the run before each."""
    shared_cpu_s: Mapping[str, float] = field(default_factory=dict[str, float])
    """CPU seconds of earlier processes for all trials, as far as they wrote them down."""

    def remaining(self, plan: Plan) -> tuple[TrialSpec, ...]:
        """The trials that are still to be run."""
        return tuple(spec for spec in plan.specs if spec.trial_id not in self.records)

    def line(self, plan: Plan) -> str:
        """What is taken over, for whoever watches."""
        ended, again = len(self.records), self.cut_off
        return (
            f"resumed: {ended} of {count(len(plan.specs), 'trial')} had ended; "
            f"{count(again, 'attempt')} under way when it was stopped"
        )


NOTHING: Final = Past()


def take_up(root: Path, trials: Path, plan: Plan) -> Past:
    """Sort what the processes before this one left in a run's directory.

    Raises:
        OSError: what was under way cannot be moved aside.
    """
    told = read_journal(root)
    records = {spec.trial_id: record for spec in plan.specs if (record := _record(spec))}
    earlier = {
        spec.trial_id: _attempts(spec) for spec in plan.specs if spec.trial_id not in records
    }
    whole = {
        attempt_name(trial, number)
        for trial, done in (
            *((name, record.attempts) for name, record in records.items()),
            *earlier.items(),
        )
        for number in range(1, len(done) + 1)
    }
    aside = root / CUT_OFF / str(told.processes)
    cut_off = sum(
        _set_aside(path, aside) for path in sorted(trials.iterdir()) if path.name not in whole
    )
    return Past(
        resumed=told.processes,
        cut_off=told.cut_off + cut_off,
        seconds=told.seconds,
        records=records,
        earlier=earlier,
        told=told.events,
        shared_cpu_s=told.shared_cpu_s,
    )


def _record(spec: TrialSpec) -> TrialRecord | None:
    """The record of a trial that ended, with as many attempts as its place says."""
    number = 1
    while (place := spec.out_dir / attempt_name(spec.trial_id, number)).is_dir():
        if (place / RECORD_NAME).is_file():
            record = _sound_record(place / RECORD_NAME, spec)
            return record if record and len(record.attempts) == number else None
        number += 1
    return None


def _sound_record(path: Path, spec: TrialSpec) -> TrialRecord | None:
    try:
        record = read_record(path)
    except (OSError, ValueError):
        return None
    return record if record.trial_id == spec.trial_id and record.agent == spec.agent else None


def _attempts(spec: TrialSpec) -> tuple[Attempt, ...]:
    """The attempts of a trial that ended, up to the first that did not."""
    found: list[Attempt] = []
    while attempt := _attempt(spec.out_dir / attempt_name(spec.trial_id, len(found) + 1)):
        found.append(attempt)
    return tuple(found)


def _attempt(place: Path) -> Attempt | None:
    try:
        return attempt_from_dict(orjson.loads((place / TAKEN_NAME).read_bytes()))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _set_aside(path: Path, aside: Path) -> int:
    """Move what was under way; 1 where it is an attempt's."""
    if path.name.startswith("."):  # temporary files of processes that are gone
        shutil.rmtree(path, ignore_errors=True)
        return 0
    aside.mkdir(parents=True, exist_ok=True)
    path.replace(aside / path.name)
    return int((aside / path.name).is_dir())
