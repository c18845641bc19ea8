# SPDX-License-Identifier: Apache-2.0
"""A run over time: gauges and phases by the moment, bounded for any length and number of trials.

Contract: pure; every moment is seconds from the beginning of the run, of a resumed one seconds that
its processes worked on it. Thinning keeps what one looks for: the highest of each gauge, the
longest stretches of a trial.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from envkit.preflight.types import (
    Course,
    Event,
    Lane,
    Reading,
    RunGauges,
    TrialEnded,
    TrialPhase,
    TrialStarted,
)
from envkit.trial.record import TrialRecord

POINTS: Final = 600
"""More than a screen has columns to spare for a curve."""
LANES: Final = 600
CHANGES: Final = 60
"""Of one trial; a lane of a thousand calls is a blur."""
HOLD: Final = "hold"
FIRST: Final = "start"
"""The phase in which an attempt begins."""


@dataclass(slots=True)
class Track:
    """What was heard so far, with the time of it."""

    gauges: list[tuple[float, RunGauges]] = field(default_factory=list[tuple[float, RunGauges]])
    changes: dict[str, list[tuple[float, str]]] = field(
        default_factory=dict[str, list[tuple[float, str]]]
    )
    """By trial, in the order they began."""

    def note(self, at_s: float, event: Event) -> None:
        """Take in an event of that moment."""
        match event:
            case RunGauges():
                self.gauges.append((at_s, event))
            case TrialStarted(trial_id=trial):
                self.changes.setdefault(trial, [])
            case TrialPhase(trial_id=trial, phase=""):
                self.leave(at_s, trial)
            case TrialPhase(trial_id=trial, phase=phase):
                self.changes.setdefault(trial, []).append((at_s, phase))
            case TrialEnded(record=record):
                self.leave(at_s, record.trial_id)
            case _:
                pass

    def leave(self, at_s: float, trial: str) -> None:
        """The trial is in no phase from then on."""
        changes = self.changes.get(trial)
        if changes and changes[-1][1]:
            changes.append((at_s, ""))


def course_of(track: Track, records: Iterable[TrialRecord]) -> Course:
    """The course of a run whose trials came to these records."""
    by_id = {record.trial_id: record for record in records}
    lanes = [
        _lane(trial, changes, by_id.get(trial))
        for trial, changes in track.changes.items()
        if changes
    ]
    left = [stop for lane in lanes for stop in _leaves(lane, HOLD)]
    readings = [
        Reading(
            at_s=round(at, 3),
            live=gauges.live_boxes,
            memory_mib=round(gauges.memory_mib, 1),
            stall_ms=round(gauges.loop_stall_ms, 1),
        )
        for at, gauges in track.gauges
    ]
    return _bounded(
        Course(
            readings=tuple(readings),
            lanes=tuple(lanes),
            barriers_s=(min(left),) if left else (),
        )
    )


def joined(courses: Sequence[tuple[float, Course]]) -> Course:
    """Runs one after the other, each with the seconds it took, as one."""
    begun = 0.0
    parts: list[Course] = []
    for seconds, course in courses:
        parts.append(_shifted(course, begun))
        begun += seconds
    return _bounded(
        Course(
            readings=tuple(reading for part in parts for reading in part.readings),
            lanes=tuple(lane for part in parts for lane in part.lanes),
            left_out=sum(part.left_out for part in parts),
            barriers_s=tuple(at for part in parts for at in part.barriers_s),
        )
    )


def _lane(trial: str, changes: Sequence[tuple[float, str]], record: TrialRecord | None) -> Lane:
    faults = _faults(changes, record) if record else ()
    kept = _longest(changes)
    return Lane(
        trial=trial,
        at_s=tuple(round(at, 3) for at, _ in kept),
        phases=tuple(phase for _, phase in kept),
        faults=faults,
    )


def _faults(
    changes: Sequence[tuple[float, str]], record: TrialRecord
) -> tuple[tuple[float, str], ...]:
    """Where attempts ended with a fault: they are the last ones of the lane, one a beginning."""
    begins = [n for n, (_, phase) in enumerate(changes) if phase == FIRST]
    told = record.attempts[-len(begins) :] if begins else record.attempts[-1:]
    ends = [*(changes[n - 1 if changes[n - 1][1] == "" else n][0] for n in begins[1:]),
            changes[-1][0]]  # fmt: skip
    pairs = zip(ends[-len(told) :], told, strict=True)
    return tuple((round(at, 3), a.faults[0].code) for at, a in pairs if a.faults)


def _longest(changes: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """So many stretches at most; a short one that goes is given to the one before it."""
    if len(changes) <= CHANGES:
        return list(changes)
    last = len(changes) - 1
    inner = sorted(range(1, last), key=lambda n: changes[n][0] - changes[n + 1][0])
    return [changes[n] for n in sorted([0, *inner[: CHANGES - 2], last])]


def _leaves(lane: Lane, phase: str) -> list[float]:
    """When it left a phase for the next one."""
    return [
        lane.at_s[n + 1]
        for n, name in enumerate(lane.phases[:-1])
        if name == phase and lane.phases[n + 1]
    ]


def _bounded(course: Course) -> Course:
    lanes = sorted(course.lanes, key=lambda lane: lane.at_s[0])
    kept = _evenly(lanes)
    return replace(
        course,
        readings=_thinned(course.readings),
        lanes=kept,
        left_out=course.left_out + len(lanes) - len(kept),
    )


def _evenly(lanes: Sequence[Lane]) -> tuple[Lane, ...]:
    if len(lanes) <= LANES:
        return tuple(lanes)
    return tuple(lanes[n * len(lanes) // LANES] for n in range(LANES))


def _thinned(readings: Sequence[Reading]) -> tuple[Reading, ...]:
    if len(readings) <= POINTS:
        return tuple(readings)
    bounds = [n * len(readings) // POINTS for n in range(POINTS + 1)]
    return tuple(_highest(readings[low:high]) for low, high in pairwise(bounds))


def _highest(some: Sequence[Reading]) -> Reading:
    return Reading(
        at_s=some[-1].at_s,
        live=max(each.live for each in some),
        memory_mib=max(each.memory_mib for each in some),
        stall_ms=max(each.stall_ms for each in some),
    )


def _shifted(course: Course, by_s: float) -> Course:
    return replace(
        course,
        readings=tuple(replace(each, at_s=round(each.at_s + by_s, 3)) for each in course.readings),
        lanes=tuple(
            replace(
                lane,
                at_s=tuple(round(at + by_s, 3) for at in lane.at_s),
                faults=tuple((round(at + by_s, 3), code) for at, code in lane.faults),
            )
            for lane in course.lanes
        ),
        barriers_s=tuple(round(at + by_s, 3) for at in course.barriers_s),
    )
