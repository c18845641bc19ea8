# SPDX-License-Identifier: Apache-2.0
"""A server that does not start says why, and leaves nothing. One that does: tests/engine."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from envkit.agent.engine.serve import ServeOptions, serving
from envkit.deadline import Budgets, DeadlineExceeded
from envkit.fault import EngineError, Owner, Phase, classify

HANGS = "#!/bin/sh\nsleep 300 &\necho started $!\nwait\n"
IGNORES = "#!/bin/sh\ntrap '' TERM\necho started $$\nwhile :; do sleep 0.1; done\n"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs/vllm.log"


def start(python: Path, log: Path, **budgets: float) -> None:
    async def run() -> None:
        kept = Budgets(**{"engine_stop_s": 0.3, **budgets})
        async with serving(ServeOptions(model=Path("none"), python=python, budgets=kept), log):
            pytest.fail("it cannot have answered")

    asyncio.run(run())


def script(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "python"
    path.write_text(text)
    path.chmod(0o755)
    return path


def started(log: Path) -> Iterator[int]:
    return (int(line.split()[1]) for line in log.read_text().splitlines() if "started" in line)


def runs(pid: int) -> bool:
    try:
        return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()
    except FileNotFoundError:
        return False


def test_an_environment_without_vllm_is_named_by_its_own_words(log: Path) -> None:
    with pytest.raises(EngineError, match=r"ended with status 1: .*No module named 'vllm'"):
        start(Path(sys.executable), log)


def test_an_interpreter_that_is_not_there_is_named(log: Path, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="none/python: there is no such interpreter"):
        start(tmp_path / "none/python", log)


@pytest.mark.parametrize("text", [HANGS, IGNORES], ids=["hangs", "ignores SIGTERM"])
def test_a_server_that_never_answers_is_ended_with_all_it_started(
    text: str, log: Path, tmp_path: Path
) -> None:
    with pytest.raises(DeadlineExceeded, match="engine_start did not finish within 1 s") as caught:
        start(script(tmp_path, text), log, engine_start_s=1)
    (pid,) = started(log)
    assert not runs(pid)
    assert classify(caught.value, Phase.RUN).owner is Owner.ENGINE


@contextmanager
def owned(log: Path, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has started a server which never answers; killed inside the block."""
    owner = (
        "import test_serve, pathlib, sys; "
        "test_serve.start(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), engine_start_s=60)"
    )
    command = [sys.executable, "-c", owner, str(script(tmp_path, HANGS)), str(log)]
    until = time.monotonic() + 60
    with subprocess.Popen(command, cwd=Path(__file__).parent) as process:
        while not (log.exists() and list(started(log))):
            assert time.monotonic() < until, "it did not start"
        yield process
    (pid,) = started(log)
    while runs(pid):
        assert time.monotonic() < until, "it outlived its owner"


def test_a_server_whose_owner_is_killed_is_ended_with_all_it_started(
    log: Path, tmp_path: Path
) -> None:
    with owned(log, tmp_path) as owner:
        owner.kill()


def test_a_server_is_ended_where_its_owner_is_killed_with_the_owners_children(
    log: Path, tmp_path: Path
) -> None:
    with owned(log, tmp_path) as owner:
        children = Path(f"/proc/{owner.pid}/task/{owner.pid}/children").read_text().split()
        assert children
        owner.kill()
        for child in children:
            os.kill(int(child), signal.SIGKILL)
