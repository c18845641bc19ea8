# SPDX-License-Identifier: Apache-2.0
"""When the first wave of trials goes on."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Barrier:
    """Holds the first wave until each of its trials is up, or will never be."""

    wave: int = 0
    armed: bool = False
    _up: set[str] = field(default_factory=set[str])
    _gone: set[str] = field(default_factory=set[str])

    def arm(self, wave: int) -> None:
        """Wait for so many trials; none disarms it."""
        self.wave, self.armed = wave, wave > 0

    @property
    def held(self) -> int:
        """Trials that are up and not over."""
        return len(self._up)

    def up(self, trial: str) -> None:
        """A trial's box lives and its gateway has answered."""
        self._up.add(trial)

    def gone(self, trial: str) -> None:
        """A trial is over, whether it ever was up or not."""
        self._up.discard(trial)
        if self.armed:
            self._gone.add(trial)

    def completed(self) -> bool:
        """True once, when the wave is complete."""
        if not self.armed or len(self._up | self._gone) < self.wave:
            return False
        self.armed = False
        return True
