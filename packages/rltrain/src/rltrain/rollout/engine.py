# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""One engine, wherever Ray puts it: a vLLM server that is started, watched and ended.

Contract: an engine answers at its URL from `start` on until `ended` says why it does not any more.
One that hangs is ended like one that died. Nothing of it outlives the actor, also where that is
killed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from envkit.agent.engine.health import LOOPBACK, answers
from envkit.agent.engine.serve import Served, ServeOptions, serving

LOOK_S: Final = 1.0
SILENT_S: Final = 60.0
"""Without an answer to a health check, an engine is taken for hung."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineAt:
    """An engine that answers."""

    name: str
    url: str
    life: int
    """How often it was started, from 1."""
    pid: int = 0
    """Of the process that leads it; 0 where somebody else started it."""


class EngineHost:
    """The actor. Every method may be called again after an end."""

    def __init__(
        self, name: str, options: ServeOptions, logs: Path, environment: Mapping[str, str]
    ) -> None:
        self._name, self._options, self._logs = name, options, logs
        self._stack = AsyncExitStack()
        self._served: Served | None = None
        self._life = 0
        os.environ |= dict(environment)

    async def start(self) -> EngineAt:
        """Start it, and wait until it answers.

        Raises:
            EngineError: it ended before that.
            DeadlineExceeded: it took too long.
        """
        await self.stop()
        self._life += 1
        log = self._logs / f"{self._name}.{self._life}.log"
        options = replace(self._options, host=_address())
        self._served = await self._stack.enter_async_context(serving(options, log))
        served = self._served
        return EngineAt(name=self._name, url=served.url, life=self._life, pid=served.pid)

    async def ended(self, life: int) -> str:
        """Wait until it answers no more; why that is."""
        silent_s = 0.0
        while (served := self._served) is not None and life == self._life:
            if not _runs(served.pid):
                return "its process ended"
            silent_s = (
                0.0
                if await asyncio.to_thread(answers, served.port, served.host)
                else silent_s + LOOK_S
            )
            if silent_s >= SILENT_S:
                return f"it did not answer for {SILENT_S:g} s"
            await asyncio.sleep(LOOK_S)
        return "it was stopped"

    async def stop(self) -> None:
        """End it; nothing of it is left then."""
        stack, self._stack, self._served = self._stack, AsyncExitStack(), None
        await stack.aclose()


class EngineThere:
    """The actor of an engine that somebody else started, and starts anew."""

    def __init__(self, name: str, url: str) -> None:
        self._name, self._url = name, url.rstrip("/")
        self._life = 0
        place = urlsplit(self._url)
        self._host, self._port = place.hostname or LOOPBACK, place.port or 80

    async def start(self) -> EngineAt:
        """Wait until it answers; whoever asks bounds that."""
        answered = await self._answers()
        while not answered:
            await asyncio.sleep(LOOK_S)
            answered = await self._answers()
        self._life += 1
        return EngineAt(name=self._name, url=self._url, life=self._life)

    async def ended(self, life: int) -> str:
        """Wait until it answers no more; why that is."""
        silent_s = 0.0
        while life == self._life and silent_s < SILENT_S:
            silent_s = 0.0 if await self._answers() else silent_s + LOOK_S
            await asyncio.sleep(LOOK_S)
        return f"{self._url} did not answer for {SILENT_S:g} s"

    async def stop(self) -> None:
        """It is not ours to end: only what it holds is not trusted any more."""
        self._life += 1

    async def _answers(self) -> bool:
        return await asyncio.to_thread(answers, self._port, self._host)


def _runs(pid: int) -> bool:
    """A process that is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def _address() -> str:
    """By which other nodes reach this one; loopback where it is the only one."""
    import ray

    nodes = [each for each in ray.nodes() if each["Alive"]]
    addresses = {each["NodeManagerAddress"] for each in nodes}
    if len(addresses) == 1:
        return LOOPBACK
    return ray.util.get_node_ip_address()
