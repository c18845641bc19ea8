# SPDX-License-Identifier: Apache-2.0
"""What a trial does beside its task, so that many of them load a machine as training does.

Contract: plain data that crosses a socket. The defaults load nothing: a trial without a shape runs
exactly as before. Nothing here changes what an agent sees or what its task is worth.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadShape:
    """The load inside one trial."""

    think: str = ""
    """Time between the replayed calls, as `envkit.agent.think.parse_think` reads it."""
    hold_s: float = 0.0
    """Seconds in which the trial sits idle with its box, gateway and connection open."""
    canary: str = ""
    """Secret of the run, from which each trial's marks are named; nothing: no marks."""
    grade_twice: bool = False
    """Run the verifier once more on what was collected, in a box of its own."""
    seed: int = 0
    """Of the run: what is drawn can be drawn again."""

    def seed_of(self, trial_id: str) -> str:
        """Seeds what one trial draws, the same in each of its attempts."""
        return f"{self.seed}/{trial_id}"

    def mark_of(self, trial_name: str) -> str:
        """What this attempt's marks are called; nobody without the secret can guess it."""
        if not self.canary:
            return ""
        return hashlib.sha256(f"{self.canary}/{trial_name}".encode()).hexdigest()[:16]


NO_LOAD = LoadShape()
"""A trial on its own."""
