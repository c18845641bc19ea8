# SPDX-License-Identifier: Apache-2.0
"""A plan's trials on a floor: all of them begun at once, a barrier before the first wave.

Contract: one ``TrialEnded`` for every spec, said once its record is on the disk. Closing the
generator closes the floor (`envkit.preflight.floor`), and with it everything that it started.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Final

from envkit.preflight.floor import Floor
from envkit.preflight.past import Past
from envkit.preflight.types import (
    Event,
    FloorEvent,
    Leftover,
    Notice,
    Plan,
    RunOptions,
    TrialCancelled,
    TrialEnded,
    TrialSpec,
)
from envkit.preflight.under_way import preloads, prepare_all, roots_of
from envkit.sandbox.channel import ChannelClosed

_QUIET_S: Final = 2.0
"""Preparing takes no longer when all is in the cache; beyond that the user is told."""


class ForkServerLauncher:
    """`Launcher` over one fork server."""

    def __init__(self, env: str, options: RunOptions) -> None:
        self._options = options
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._floor = Floor(env, options, self._hear)

    async def run(self, specs: Sequence[TrialSpec]) -> AsyncGenerator[Event]:
        """Run every spec; see `Launcher`."""
        preparing = asyncio.create_task(
            asyncio.to_thread(prepare_all, specs, self._options, local=self._floor.local)
        )
        await asyncio.wait([preparing], timeout=_QUIET_S)
        if not preparing.done():
            yield Notice(line="building what the tasks' boxes share; this happens once")
        trials = await preparing
        wave = min(self._options.concurrency, len(trials)) if self._options.barrier else 0
        async with self._floor.open(roots=roots_of(trials), preload=preloads(specs), wave=wave):
            for trial in trials:
                self._floor.begin(trial)
            ended = 0
            with contextlib.suppress(GeneratorExit):  # the floor would wrap it as an error
                while ended < len(trials):
                    event = await self._events.get()
                    ended += isinstance(event, TrialEnded)
                    yield event
                with contextlib.suppress(ChannelClosed):  # every trial has said so itself
                    yield await self._floor.gauges()

    def _hear(self, event: FloorEvent) -> None:
        if not isinstance(event, TrialCancelled):  # nobody here cancels one
            self._events.put_nowait(event)

    def leftovers(self) -> Sequence[Leftover]:
        """What carries this run's token now, and the temporary files that were there at its end."""
        return self._floor.leftovers()


def launcher(env: str, options: RunOptions) -> ForkServerLauncher:
    """The launcher for ``--env``: ``local``, ``unsafe-process`` or an import path."""
    return ForkServerLauncher(env, options)


def launcher_of(plan: Plan, past: Past, chaos: Path | None = None) -> ForkServerLauncher:
    """The launcher for what is left of a plan; ``chaos`` as `RunOptions` has it."""
    return launcher(
        plan.env,
        RunOptions(
            concurrency=plan.concurrency,
            out_dir=plan.out_dir,
            run_token=plan.run_token,
            barrier=plan.gated,
            seed=plan.seed,
            starts_per_s=plan.starts_per_s,
            turns=plan.turns,
            earlier=past.earlier,
            chaos=chaos,
        ),
    )
