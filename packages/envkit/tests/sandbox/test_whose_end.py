# SPDX-License-Identifier: Apache-2.0
"""Whose doing the end of a box was, when its agent had run out of memory before."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envkit.deadline import deadline
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


def test_a_command_that_the_host_cuts_off_is_not_the_agents(in_room: Callable[..., Any]) -> None:
    if os.geteuid() != 0:
        pytest.skip("not run: needs root")

    async def cut(room: Room) -> str:
        running = asyncio.ensure_future(room.run("exec sleep 1234321"))
        command = await _appears(b"sleep\x001234321\x00")
        os.kill(_parent(command), signal.SIGKILL)
        with pytest.raises(RequestFailed) as failed:
            await running
        assert await room.say("echo alive") == "alive\n"
        return failed.value.code

    assert in_room(cut) == "SandboxDied"


def test_what_joined_a_box_that_is_gone_ends_and_does_not_go_on_as_its_caller() -> None:
    if os.geteuid() != 0:
        pytest.skip("not run: needs root")
    done = subprocess.run([sys.executable, "-c", AFTER_THE_BOX], timeout=60, capture_output=True)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, b""), done.stderr.decode()


@pytest.mark.parametrize("status", [1, 127, 137, 213, 255])
def test_no_status_of_a_command_passes_for_a_box_that_could_not_be_entered(
    in_room: Callable[..., Any], status: int
) -> None:
    async def ends(room: Room) -> int:
        return (await room.run(f"exit {status}")).status

    assert in_room(ends) == status


def test_a_command_has_its_streams_however_high_their_numbers_were() -> None:
    """Of 550 boxes at once the first had numbers above what a box may open."""
    done = subprocess.run([sys.executable, "-c", HIGH_NUMBERS], timeout=60, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"in\nout\n0\n1\n2\n3\n", b"err\n")


HIGH_NUMBERS = """
import os, resource
from envkit.sandbox.enter import Command, _execute

read, write = os.pipe()
os.write(write, b"in\\n")
os.close(write)
for fd, number in ((read, 900), (1, 901), (2, 902)):
    os.dup2(fd, number)
os.closerange(0, 900)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
script = "cat; echo out; echo err >&2; exec ls /proc/self/fd"
env = {"PATH": os.environ["PATH"]}
_execute(Command(argv=["sh", "-c", script], env=env, cwd="/", stdin=900, stdout=901, stderr=902))
"""


AFTER_THE_BOX = """
import os
from envkit.sandbox.enter import fork_inside

os.unshare(os.CLONE_NEWPID)
process_1 = os.fork()
if process_1 == 0:
    os._exit(0)
os.waitpid(process_1, 0)
fork_inside()
print("went on")
"""
"""Forks into a pid namespace whose process 1 has ended."""


async def _appears(command: bytes) -> int:
    async with deadline("test", 30):
        while (pid := _running(command)) == 0:  # noqa: ASYNC110 - it begins in another process
            await asyncio.sleep(0.01)
    return pid


def _running(command: bytes) -> int:
    """Host pid of the process with this command line; 0 for none."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "cmdline").read_bytes() == command:
                return int(entry.name)
    return 0


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
