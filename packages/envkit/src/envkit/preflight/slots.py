# SPDX-License-Identifier: Apache-2.0
"""What a trial took of its slot: seconds, CPU, memory, boxes.

Contract: pure. What a training run has not is left out everywhere: the wait at the barrier, which
is there to have all boxes live at one instant, and a second grading.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from envkit.trial.record import Attempt, TrialRecord

ASIDE: Final = frozenset({"hold", "regrade"})
"""Phases that are no part of a trial's own life."""
VERIFIES: Final = "grade"
"""The phase in which the verifier's box lives."""


def own_phases(attempt: Attempt) -> dict[str, float]:
    """Seconds by phase, but for those that only a preflight has."""
    return {name: seconds for name, seconds in attempt.phases.items() if name not in ASIDE}


def slot_s(record: TrialRecord) -> float:
    """Seconds for which a trial took a slot, over all its attempts.

    By their phases; where a process died and told none, by the clock, which runs while a trial
    waits to be run again as well.
    """
    told = sum(sum(own_phases(attempt).values()) for attempt in record.attempts)
    if all(attempt.phases for attempt in record.attempts):
        return told
    aside = sum(attempt.phases.get(name, 0.0) for attempt in record.attempts for name in ASIDE)
    return max(told, record.seconds - aside)


def cpu_s(record: TrialRecord) -> float:
    """CPU seconds of all attempts and all parts, but for phases that only a preflight has."""
    return sum(_own_cpu_s(attempt) for attempt in record.attempts)


def _own_cpu_s(attempt: Attempt) -> float:
    aside = sum(attempt.cpu_by_phase.get(name, 0.0) for name in ASIDE)
    return max(0.0, sum(attempt.cpu_s.values()) - aside)


def peak_memory_mib(record: TrialRecord) -> float:
    """Of the attempt that took most; 0 where it could not be read."""
    return max((attempt.peak_memory_mib for attempt in record.attempts), default=0.0)


def box_s(record: TrialRecord) -> Mapping[str, float]:
    """Seconds for which each kind of box lived, over all attempts."""
    graded = sum(attempt.phases.get(VERIFIES, 0.0) for attempt in record.attempts)
    served = any("gateway" in attempt.phases for attempt in record.attempts)
    whole = slot_s(record)
    return {"agent": whole, "gateway": whole if served else 0.0, "verifier": graded}


def span_s(records: Sequence[TrialRecord]) -> float:
    """From the first start to the last end; 0 where nothing was started."""
    started = [r for r in records if r.attempts and r.attempts[0].started_at > 0]
    if not started:
        return 0.0
    begin = min(record.attempts[0].started_at for record in started)
    return max(record.attempts[0].started_at + record.seconds for record in started) - begin
