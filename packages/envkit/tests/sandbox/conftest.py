# SPDX-License-Identifier: Apache-2.0
"""A real box for a test: one fork server a session of tests, one box a test."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from envkit.image.rootfs import RootSpec, ensure_rootfs
from envkit.sandbox import command
from envkit.sandbox.availability import availability
from envkit.sandbox.limits import Limits
from envkit.sandbox.prepare import cache_directory
from envkit.sandbox.session import Session, own_session
from envkit.sandbox.spec import BoxSpec
from envkit.sandbox.stage import files_uid

PATH = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}
SMALL = Limits(memory_mib=256, processes=48, storage_mib=48, cpus=1.0)


@dataclass
class Room:
    """An open box and the way to it."""

    session: Session
    name: str = "agent1"
    events: list[str] = field(default_factory=list)

    async def run(self, script: str, timeout_s: float = 30.0) -> command.Finished:
        return await command.run(
            self.session.channel,
            ["/bin/bash", "-c", script],
            box=self.name,
            env=PATH,
            cwd="/",
            timeout_s=timeout_s,
            max_output=1 << 20,
        )

    async def say(self, script: str) -> str:
        """What a script that must succeed writes."""
        done = await self.run(script)
        assert done.status == 0, done.stderr.decode()
        return done.stdout.decode()

    async def python(self, source: str) -> Any:
        """The JSON that a Python program in the box prints."""
        return json.loads(await self.say(f"python3 - <<'PROGRAM'\n{source}\nPROGRAM"))

    async def ask(self, op: str, **arguments: Any) -> dict[str, Any]:
        return await self.session.channel.ask(op, box=self.name, **arguments)


type Rooms = Callable[..., AbstractAsyncContextManager[Room]]


@pytest.fixture(scope="session")
def root() -> Path:
    boxes = availability()
    if not boxes.ok:
        pytest.skip(f"missing tool: {boxes.line()}")
    return ensure_rootfs(RootSpec(owner_uid=files_uid()), cache_directory())


@pytest.fixture
def open_room(root: Path) -> Rooms:
    """``async with open_room(limits=..., world=...) as room``."""

    @asynccontextmanager
    async def opened(
        limits: Limits = SMALL, world: Path | None = None, network: bool = False
    ) -> AsyncGenerator[Room]:
        async with own_session(warm=False) as session:
            room = Room(session)
            session.handlers[room.name] = lambda event, _: room.events.append(event)
            spec = BoxSpec(name=room.name, root=root, world=world, limits=limits, network=network)
            await room.ask("open", spec=spec.to_dict())
            yield room

    return opened


@pytest.fixture
def in_room(open_room: Rooms) -> Callable[..., Any]:
    """Run ``test(room)`` in a box of its own on a real loop."""

    def run(test: Callable[[Room], Coroutine[Any, Any, Any]], **options: Any) -> Any:
        async def whole() -> Any:
            async with open_room(**options) as room:
                return await test(room)

        return asyncio.run(whole())

    return run
