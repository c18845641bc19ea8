# SPDX-License-Identifier: Apache-2.0
"""What reaches into processes from outside says what it saw, not what it meant to do."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from envkit.preflight.chaos import hands

SELF = """
import signal, sys
from pathlib import Path
from envkit.preflight.chaos import hands
hands.strike_self(signal.{number}, lambda effect: Path(sys.argv[1]).write_text(effect))
"""
PATIENCE_S = 60


@pytest.fixture
def sleeper() -> Generator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "1000"])
    yield process
    process.kill()
    process.wait()


def test_a_killed_process_is_seen_to_be_gone(sleeper: subprocess.Popen[bytes]) -> None:
    assert asyncio.run(hands.kill(sleeper.pid)) == f"process {sleeper.pid} is gone"
    assert sleeper.wait(PATIENCE_S) == -signal.SIGKILL


def test_a_stopped_process_is_seen_to_stand_still(sleeper: subprocess.Popen[bytes]) -> None:
    assert asyncio.run(hands.stop(sleeper.pid)) == f"process {sleeper.pid} stands still"
    assert sleeper.poll() is None


def test_a_process_that_was_paused_goes_on(sleeper: subprocess.Popen[bytes]) -> None:
    assert asyncio.run(hands.pause(sleeper.pid)) == f"process {sleeper.pid} stood still for 1 s"
    assert sleeper.poll() is None
    assert "State:\tT" not in Path(f"/proc/{sleeper.pid}/status").read_text()


def test_a_process_that_kills_itself_leaves_word_of_its_end(tmp_path: Path) -> None:
    word = tmp_path / "word"
    done = subprocess.Popen([sys.executable, "-c", SELF.format(number="SIGKILL"), str(word)])
    pid = done.pid
    fd = os.pidfd_open(pid)
    try:
        assert done.wait(PATIENCE_S) == -signal.SIGKILL
    finally:
        os.close(fd)
    asyncio.run(_appears(word))
    assert word.read_text() == f"process {pid} is gone"


def test_a_process_that_stops_itself_leaves_word_of_it(tmp_path: Path) -> None:
    word = tmp_path / "word"
    stopped = subprocess.Popen([sys.executable, "-c", SELF.format(number="SIGSTOP"), str(word)])
    try:
        asyncio.run(_appears(word))
        assert word.read_text() == f"process {stopped.pid} is in state T"
    finally:
        stopped.kill()
        stopped.wait()


async def _appears(path: Path) -> None:
    """Whole: its writer may have opened it and not written yet."""

    def written() -> bool:
        return path.exists() and path.read_text() != ""

    async with asyncio.timeout(PATIENCE_S):
        while not written():  # noqa: ASYNC110 - another process writes
            await asyncio.sleep(0.01)
