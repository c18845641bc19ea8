# SPDX-License-Identifier: Apache-2.0
"""Two boxes of one root: in the one python3 is warm, in the other cold."""

import asyncio
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from envkit.image.rootfs import RootSpec, ensure_rootfs
from envkit.sandbox import command
from envkit.sandbox.availability import availability
from envkit.sandbox.limits import Limits
from envkit.sandbox.prepare import cache_directory
from envkit.sandbox.session import own_session
from envkit.sandbox.spec import BoxSpec
from envkit.sandbox.stage import files_uid

from ..conftest import Room

LIMITS = Limits(memory_mib=512, processes=64, storage_mib=64, cpus=2.0)
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/root", "LANG": "C.UTF-8"}


@pytest.fixture(scope="session")
def office_root() -> Path:
    """A root with packages that take long to import."""
    boxes = availability()
    if not boxes.ok:
        pytest.skip(f"missing tool: {boxes.line()}")
    spec = RootSpec(packages=("numpy", "openpyxl"), owner_uid=files_uid())
    return ensure_rootfs(spec, cache_directory())


@dataclass
class Both:
    """A loop with a warm and a cold room."""

    runner: asyncio.Runner
    warm: Room
    cold: Room
    root: Path

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(coroutine)

    async def until_admitted(self) -> None:
        """Until the door lets in again after a flood."""
        probe = "while [ \"$(python3 -c 'import os; print(os.getppid())')\" != 0 ]; do :; done"
        assert not (await shell(self.warm, probe, timeout_s=30)).timed_out

    async def started(self) -> int:
        """Programs that ran warm so far."""
        return int((await self.warm.ask("usage"))["warmed"])


@pytest.fixture(scope="module")
def both(office_root: Path) -> Iterator[Both]:
    with asyncio.Runner() as runner:
        opened = [
            own_session(warm=False, roots=(office_root,)),
            own_session(warm=False),
        ]
        rooms = [Room(runner.run(session.__aenter__())) for session in opened]
        for room in rooms:
            spec = BoxSpec(name=room.name, root=office_root, limits=LIMITS)
            runner.run(room.ask("open", spec=spec.to_dict()))
        warm, cold = rooms
        yield Both(runner, warm, cold, office_root)
        for session in opened:
            runner.run(session.__aexit__(None, None, None))


async def shell(
    room: Room, script: str, env: dict[str, str] = ENV, timeout_s: float = 60.0
) -> command.Finished:
    """Run a script in a room, in a directory of its own."""
    return await argv(room, ["/bin/bash", "-c", script], env, timeout_s)


async def argv(
    room: Room, line: list[str], env: dict[str, str] = ENV, timeout_s: float = 60.0
) -> command.Finished:
    """Run a command line in a room, without a shell."""
    return await command.run(
        room.session.channel,
        line,
        box=room.name,
        env=env,
        cwd="/tmp",
        timeout_s=timeout_s,
        max_output=1 << 20,
    )
