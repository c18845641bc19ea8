# SPDX-License-Identifier: Apache-2.0
"""CPU seconds of one trial by phase, read by the fork server when a phase ends.

Contract: every second that is counted is counted once, in the phase that was running when it was
read. Counted are the trial's own process, the groups of its boxes, and the forks that enter them
(what starts a command, what carries files). A box that is gone stays counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

FIRST: Final = "start"
"""What a process uses before it says its first phase belongs to it."""


@dataclass(slots=True)
class Meter:
    """Of one attempt."""

    by_phase: dict[str, float] = field(default_factory=dict[str, float])
    forks_s: float = 0.0
    """Of what entered boxes that are gone."""
    _phase: str = FIRST
    _trial_s: float = 0.0
    _gone_s: float = 0.0
    _counted_s: float = 0.0

    def enter(self, phase: str, trial_s: float, boxes_s: float) -> None:
        """The trial enters a phase; ``boxes_s`` is what the boxes that live used so far."""
        self._trial_s = trial_s
        self._count(boxes_s)
        self._phase = phase

    def box_gone(self, boxes_s: float, forks_s: float) -> None:
        """A box was closed that had used so much in all, its forks included."""
        self._gone_s += boxes_s
        self.forks_s += forks_s

    def end(self, trial_s: float) -> dict[str, float]:
        """The trial's process has ended, and its boxes are gone: seconds by phase."""
        self._trial_s = trial_s
        self._count(0.0)
        return self.by_phase

    def _count(self, boxes_s: float) -> None:
        """A box that is being closed is for a moment in neither sum: it is counted later."""
        total = self._trial_s + self._gone_s + boxes_s
        if total > self._counted_s:
            since = total - self._counted_s
            self.by_phase[self._phase] = self.by_phase.get(self._phase, 0.0) + since
            self._counted_s = total
