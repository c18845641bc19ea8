# SPDX-License-Identifier: Apache-2.0
"""Who waited for a core and who merely waited, by the kernel's own count."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from envkit.sandbox.starvation import starved

pytestmark = pytest.mark.integration

SPIN = "print(flush=True)\nwhile True: pass"
PATIENCE_S = 30.0


@contextmanager
def on_one_core(count: int) -> Iterator[list[int]]:
    """Busy processes that share one core alike, each in a session of its own."""
    with ExitStack() as stack:
        yield [_spinner(stack, [sys.executable, "-c", SPIN]) for _ in range(count)]


def _spinner(stack: ExitStack, command: list[str]) -> int:
    process = stack.enter_context(
        subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    )
    stack.callback(os.killpg, process.pid, signal.SIGKILL)
    assert process.stdout is not None
    process.stdout.readline()
    pin(process.pid)
    return process.pid


def pin(pid: int) -> None:
    os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))})


def is_starved_in_time(pid: int) -> bool:
    """Whether it counts as starved at last: the kernel adds a wait when it ends, not before."""
    began = time.monotonic()
    while time.monotonic() - began < PATIENCE_S:
        time.sleep(0.1)
        if starved(pid, wall_s=time.monotonic() - began, cpu_s=None, cpus=1.0):
            return True
    return False


def test_a_command_that_others_kept_from_the_core_is_starved():
    with on_one_core(4) as (command, *_):
        assert is_starved_in_time(command)


def test_one_that_sleeps_is_not():
    with subprocess.Popen(["sleep", "100"]) as process:
        assert not starved(process.pid, wall_s=0.5, cpu_s=None, cpus=1.0)
        process.kill()


def test_one_that_used_its_share_of_the_quota_is_not_whatever_it_waited():
    with on_one_core(4) as (command, *_):
        assert is_starved_in_time(command)
        assert not starved(command, wall_s=0.1, cpu_s=0.05, cpus=1.0)


def test_a_child_of_the_command_counts():
    script = f"{sys.executable} -c '{SPIN}'; true"
    with on_one_core(3), ExitStack() as stack:
        shell = _spinner(stack, ["bash", "-c", script])
        children = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
        pin(int(children[0]))
        assert is_starved_in_time(shell)


def test_what_works_for_a_child_of_the_command_counts():
    """As a warmed interpreter does for its shim, which sleeps meanwhile."""
    with on_one_core(4) as (worker, *_), ExitStack() as stack:
        shell = stack.enter_context(subprocess.Popen(["bash", "-c", "sleep 100 & wait"]))
        stack.callback(shell.kill)
        assert is_starved_in_time(worker)
        children = Path(f"/proc/{shell.pid}/task/{shell.pid}/children")
        while not (child := children.read_text().split()):
            pass
        stack.callback(os.kill, int(child[0]), signal.SIGKILL)
        followers = {int(child[0]): worker}
        assert not starved(shell.pid, wall_s=0.1, cpu_s=None, cpus=1.0)
        assert starved(shell.pid, wall_s=0.1, cpu_s=None, cpus=1.0, followers=followers)


def test_one_that_has_ended_is_not():
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert not starved(process.pid, wall_s=1.0, cpu_s=None, cpus=1.0)
