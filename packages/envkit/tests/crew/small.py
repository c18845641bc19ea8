# SPDX-License-Identifier: Apache-2.0
"""A crew for tests: what it is opened with, and how long anything may take."""

from __future__ import annotations

import asyncio
import itertools
import os
import select
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from envkit.agent.types import CallRequest
from envkit.crew.client import Crew, open_crew
from envkit.crew.types import (
    CrewEvent,
    CrewLost,
    CrewOptions,
    Ended,
    Phase,
    Ready,
    Refused,
    TrialOrder,
)
from envkit.deadline import deadline

from ..run.small import EXEC

PATIENCE_S = 60.0
FOREVER = CallRequest(name=EXEC, arguments={"code": "sleep 600"})
"""A call that does not come back in a test's time."""
FAST = {"backoff": {"tries": 1, "first_s": 0.01}}
"""Of an engine that is not asked again."""


@dataclass(frozen=True, kw_only=True)
class Yard:
    """Where a test's crews work, and for which engine."""

    home: Path
    model: Path
    engine: str

    @property
    def root(self) -> Path:
        return self.home / "crew"

    def options(self, **more: Any) -> CrewOptions:
        agent = {"tokenizer": str(self.model), "engine": FAST, **more.pop("agent", {})}
        named: dict[str, Any] = {
            "tasks": (self.home / "tasks",),
            "concurrency": 2,
            "seed": 1,
            **more,
        }
        return CrewOptions(python=Path(sys.executable), root=self.root, agent=agent, **named)

    def order(self, trial: str, **more: Any) -> TrialOrder:
        named: dict[str, Any] = {
            "group_id": "group",
            "sample": 0,
            "task": "ordinary",
            "engine": self.engine,
        }
        return TrialOrder(trial_id=trial, **{**named, **more})


@dataclass(kw_only=True)
class Heard:
    """What a crew said."""

    crew: Crew
    events: list[CrewEvent] = field(default_factory=list[CrewEvent])

    async def until(self, wanted: Callable[[CrewEvent], bool]) -> CrewEvent:
        """The next event of that kind."""
        async with deadline("test", PATIENCE_S):
            async for event in self.crew.events():
                self.events.append(event)
                if wanted(event):
                    return event
        raise AssertionError("it says nothing more")

    async def ends(self, count: int) -> dict[str, Ended | Refused]:
        """The next so many ends, by trial."""
        found: dict[str, Ended | Refused] = {}
        while len(found) < count:
            event = await self.until(lambda each: isinstance(each, Ended | Refused))
            assert isinstance(event, Ended | Refused)
            found[event.trial] = event
        return found

    async def acts(self, trial: str) -> None:
        """A trial's agent is at work."""
        await self.until(
            lambda each: isinstance(each, Phase) and (each.trial, each.phase) == (trial, "act")
        )


@asynccontextmanager
async def heard(options: CrewOptions) -> AsyncGenerator[Heard]:
    """A crew, and what it says."""
    async with open_crew(options) as crew:
        yield Heard(crew=crew)


async def lost(
    options: CrewOptions, during: Callable[[Heard], Coroutine[Any, Any, Any]]
) -> tuple[str, Ready]:
    """Why a crew was lost in which this was done, and what it had said as it opened."""
    ready: Ready | None = None
    try:
        async with heard(options) as crew:
            ready = crew.crew.ready
            await during(crew)
            await crew.until(lambda _: False)
    except CrewLost as error:
        assert ready is not None
        return str(error), ready
    raise AssertionError("it was not lost")


async def ran(options: CrewOptions, orders: Sequence[TrialOrder]) -> dict[str, Ended | Refused]:
    """What orders came to in a crew of their own."""
    async with heard(options) as crew:
        for order in orders:
            await crew.crew.begin(order)
        return await crew.ends(len(orders))


async def soon(condition: Callable[[], bool]) -> None:
    """Wait until it holds: of what tells nobody that it has changed."""
    async with deadline("test", PATIENCE_S):
        for _ in itertools.count():
            if condition():
                return
            await asyncio.sleep(0.02)


def play[T](work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(work)


def gone(pid: int) -> None:
    """Wait until a process has ended."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([fd], [], [], PATIENCE_S)[0], f"process {pid} lives on"
    finally:
        os.close(fd)
