# SPDX-License-Identifier: Apache-2.0
"""Trials that are told more as they are run than their plan knows: where their engine answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence

from envkit.preflight.types import Event, Launcher, Leftover, TrialSpec

type Amend = Callable[[TrialSpec], TrialSpec]


class Amended:
    """A launcher that runs each spec as it was amended."""

    def __init__(self, launcher: Launcher, amend: Amend) -> None:
        self._launcher = launcher
        self._amend = amend

    def run(self, specs: Sequence[TrialSpec]) -> AsyncGenerator[Event]:
        """Run every spec; see `Launcher`."""
        return self._launcher.run([self._amend(spec) for spec in specs])

    def leftovers(self) -> Sequence[Leftover]:
        """What carries this run's token now."""
        return self._launcher.leftovers()
