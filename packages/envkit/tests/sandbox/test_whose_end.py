# SPDX-License-Identifier: Apache-2.0
"""Whose doing the end of a box was, when its agent had run out of memory before."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envkit.sandbox.channel import RequestFailed

from .conftest import Room

pytestmark = pytest.mark.integration


def process_1(namespace: str) -> int:
    """Host pid of process 1 of a pid namespace."""
    for entry in Path("/proc").iterdir():
        try:
            lives_there = os.readlink(entry / "ns/pid") == namespace
            rows = (entry / "status").read_text().splitlines() if lives_there else []
        except OSError:
            continue
        if any(row.startswith("NSpid:") and row.split()[-1] == "1" for row in rows):
            return int(entry.name)
    raise AssertionError(f"no process 1 in {namespace}")


def test_an_end_from_outside_is_not_the_agents_whatever_it_survived(
    in_room: Callable[..., Any],
) -> None:
    if os.geteuid() != 0:
        pytest.skip("not run: needs root")

    async def end(room: Room) -> str:
        done = await room.run("python3 -c 'x = bytearray(1 << 30)'")
        assert done.oom_kills == 1
        namespace = (await room.say("readlink /proc/self/ns/pid")).strip()
        os.kill(process_1(namespace), signal.SIGKILL)
        with pytest.raises(RequestFailed) as failed:
            await room.run("true")
        return failed.value.code

    assert in_room(end) == "SandboxDied"
