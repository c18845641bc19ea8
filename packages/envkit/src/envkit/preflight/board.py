# SPDX-License-Identifier: Apache-2.0
"""Where every trial of a run stands, from what its launcher said.

Contract: pure state; a trial is waiting, in exactly one phase, or ended.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from envkit.preflight.gate import faulted, wrong_reward
from envkit.preflight.text import one_line, seconds
from envkit.preflight.types import (
    PHASES,
    Event,
    Notice,
    RunGauges,
    TrialEnded,
    TrialPhase,
    TrialStarted,
)
from envkit.trial.record import TrialRecord

SELDOM: Final = frozenset({"idle", "think", "regrade"})
"""Phases that a run has only where they were asked for."""


@dataclass(slots=True)
class Board:
    """The state of a run."""

    total: int
    phase: dict[str, str] = field(default_factory=dict[str, str])
    """Phase by trial, of the trials that run now."""
    ended: list[TrialRecord] = field(default_factory=list[TrialRecord])
    gauges: RunGauges | None = None
    faulted_attempts: int = 0
    seen: set[str] = field(default_factory=set[str])

    def add(self, event: Event) -> None:
        match event:
            case TrialStarted(trial_id=trial):
                self.phase.setdefault(trial, PHASES[0])
            case TrialPhase(trial_id=trial, phase=phase):
                self.phase[trial] = phase
            case TrialEnded(record=record):
                self.phase.pop(record.trial_id, None)
                self.ended.append(record)
                self.faulted_attempts += sum(
                    faulted(attempt, attempt is record.attempts[-1]) for attempt in record.attempts
                )
            case RunGauges():
                self.gauges = event
            case Notice():
                pass

    def in_phase(self) -> dict[str, int]:
        """How many trials are in each phase now, in the order of the phases.

        Phases that only some runs have are there once a trial was seen in them.
        """
        counts = Counter(self.phase.values())
        self.seen |= counts.keys()
        usual = [name for name in PHASES if name in self.seen or name not in SELDOM]
        names = [*usual, *sorted(set(counts) - set(PHASES))]
        return {name: counts[name] for name in names}

    def line(self) -> str:
        """``12 of 64 ended, 52 running, 50 boxes live, 0 faulted attempts``."""
        live = f", {self.gauges.live_boxes} boxes live" if self.gauges else ""
        return (
            f"{len(self.ended)} of {self.total} ended, {len(self.phase)} running{live}, "
            f"{self.faulted_attempts} faulted attempts"
        )


def trial_line(record: TrialRecord) -> str:
    """One ended trial on one line, safe for a terminal."""
    reward = "no reward" if record.reward is None else f"reward {record.reward:g}"
    valid = "" if record.reward_valid or record.reward is None else " (not valid)"
    again = f", attempt {len(record.attempts)}" if len(record.attempts) > 1 else ""
    fault = ""
    if record.fault is not None:
        message = one_line(record.fault.message, 120)
        fault = f": {record.fault.owner.value} fault {record.fault.code}: {message}"
    name = one_line(record.trial_id, 60)
    return f"{name} {reward}{valid} in {seconds(record.seconds)}{again}{fault}"


def is_bad(record: TrialRecord) -> bool:
    """Whether an ended trial is one to look at."""
    return not record.reward_valid or wrong_reward(record)
