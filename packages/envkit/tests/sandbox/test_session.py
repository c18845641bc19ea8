# SPDX-License-Identifier: Apache-2.0
"""A fork server lives as long as who asked for it, and leaves nothing however that one ends."""

import asyncio
import os
import select
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from envkit.deadline import within
from envkit.fault import SandboxUnavailable
from envkit.sandbox import reaper, session
from envkit.sandbox.channel import ChannelClosed
from envkit.sandbox.spec import BoxSpec
from envkit.sandbox.stage import STAGES

from .conftest import Room

pytestmark = pytest.mark.integration

HOLDER = """
import asyncio, sys
from pathlib import Path
from envkit.sandbox.session import forkserver, _attach
from envkit.sandbox.spec import BoxSpec

async def main():
    async with forkserver(warm=False) as server:
        mine = await _attach(server)
        spec = BoxSpec(name="a", root=Path(sys.argv[1]))
        await mine.channel.ask("open", box="a", spec=spec.to_dict())
        print(server.run, server.process.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
def holder(root: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLDER), str(root)],
        stdout=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str]) -> tuple[str, int]:
    assert process.stdout is not None
    run, pid = process.stdout.readline().split()
    return run, int(pid)


def wait_gone(pid: int, seconds: float = 30) -> None:
    fd = os.pidfd_open(pid)
    try:
        assert select.select([fd], [], [], seconds)[0], f"process {pid} still lives"
    finally:
        os.close(fd)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_whoever_holds_it_may_be_killed_and_nothing_is_left(
    holder: subprocess.Popen[str], number: signal.Signals
):
    with holder:
        run, server = said(holder)
        assert reaper.processes(run)
        holder.send_signal(number)
        holder.wait(30)
        if Path(f"/proc/{server}").exists():
            wait_gone(server)
    assert [r for r in reaper.remnants(run) if r.kind != "file"] == []
    assert not (STAGES / f"envkit-run-{run}").exists()


def test_a_killed_server_takes_its_boxes_along_and_its_holder_is_told(root: Path):
    async def kill_it() -> str:
        async with session.forkserver(warm=False) as server:
            mine = await session._attach(server)
            room = Room(mine, "a")
            await room.ask("open", spec=BoxSpec(name="a", root=root).to_dict())
            waiting = asyncio.ensure_future(room.run("sleep 1000"))
            await asyncio.sleep(0)
            server.process.kill()
            with pytest.raises(ChannelClosed):
                await within("exec", 20, waiting)
            return server.run

    run = asyncio.run(kill_it())
    left = [remnant for remnant in reaper.remnants(run) if remnant.kind == "process"]
    assert left == []
    reaper.reap()
    assert reaper.remnants(run) == []


def test_what_cannot_be_done_before_the_first_fork_is_told_and_its_traceback_kept(tmp_path: Path):
    async def start() -> None:
        async with session.forkserver(log=tmp_path / "log", preload=[("envkit:no_such", {})]):
            pass

    with pytest.raises(SandboxUnavailable, match=r"failed: AttributeError: .*no_such[^\n]*$"):
        asyncio.run(start())
    assert "Traceback" in (tmp_path / "log").read_text()


def test_a_machine_that_forbids_boxes_is_told_in_one_line(monkeypatch: pytest.MonkeyPatch):
    async def start() -> None:
        async with session.forkserver(warm=False):
            pass

    # An unreadable directory in place of the interpreter's modules: the server cannot even start.
    monkeypatch.setenv("PYTHONPATH", "/dev/null")
    monkeypatch.setattr(session.sys, "executable", "/bin/false")
    with pytest.raises(SandboxUnavailable) as told:
        asyncio.run(start())
    assert "\n" not in str(told.value)
