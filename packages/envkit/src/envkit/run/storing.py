# SPDX-License-Identifier: Apache-2.0
"""A launcher whose trials have ended once their rows are durable.

Contract: everything else it says at once, in the order in which the launcher inside it does. When
it is closed, what had ended by then is stored before it returns. A sink that fails ends the run,
and its error is raised once what runs is stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from envkit.preflight.types import Event, Launcher, Leftover, TrialEnded, TrialSpec
from envkit.run.sink import Sink
from envkit.trial.record import TrialRecord

type _Said = asyncio.Queue[Event | None]
type _Ended = asyncio.Queue[TrialRecord | None]


class Storing:
    """A launcher around another."""

    def __init__(self, launcher: Launcher, sink: Sink) -> None:
        self._launcher = launcher
        self._sink = sink

    async def run(self, specs: Sequence[TrialSpec]) -> AsyncGenerator[Event]:
        """Run every spec; see `Launcher`."""
        said: _Said = asyncio.Queue()
        working = asyncio.create_task(self._work(specs, said))
        try:
            while (event := await said.get()) is not None:
                yield event
            await working
        finally:
            working.cancel()
            await asyncio.wait({working})

    def leftovers(self) -> Sequence[Leftover]:
        """What carries this run's token now."""
        return self._launcher.leftovers()

    async def _work(self, specs: Sequence[TrialSpec], said: _Said) -> None:
        """Run and store side by side; None is the last that is said."""
        ended: _Ended = asyncio.Queue()
        running = asyncio.create_task(self._pump(specs, ended, said))
        storing = asyncio.create_task(
            self._sink.write(ended, lambda record: said.put_nowait(TrialEnded(record=record)))
        )
        try:
            await asyncio.wait({running, storing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            running.cancel()
            await asyncio.wait({running})
            ended.put_nowait(None)
            await asyncio.wait({storing})
            said.put_nowait(None)
        storing.result()
        running.result()

    async def _pump(self, specs: Sequence[TrialSpec], ended: _Ended, said: _Said) -> None:
        async with aclosing(self._launcher.run(specs)) as events:
            async for event in events:
                if isinstance(event, TrialEnded):
                    ended.put_nowait(event.record)
                else:
                    said.put_nowait(event)
