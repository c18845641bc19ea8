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

SPIN = "import os, sys; os.nice(int(sys.argv[1])); print(flush=True)\nwhile True: pass"
PATIENCE_S = 30.0


@contextmanager
def on_one_core(*niceness: int) -> Iterator[list[int]]:
    """Busy processes that share one core."""
    core = min(os.sched_getaffinity(0))
    with ExitStack() as stack:
        pids: list[int] = []
        for nice in niceness:
            command = [sys.executable, "-c", SPIN, str(nice)]
            spinner = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            stack.callback(spinner.kill)
            assert spinner.stdout is not None
            spinner.stdout.readline()
            os.sched_setaffinity(spinner.pid, {core})
            pids.append(spinner.pid)
        yield pids


def waited_s(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def until_waited(pid: int, seconds: float) -> float:
    """Seconds in which ``pid`` waited for a core for ``seconds`` more."""
    began, before = time.monotonic(), waited_s(pid)
    while waited_s(pid) - before < seconds:
        assert time.monotonic() - began < PATIENCE_S
        time.sleep(0.01)
    return time.monotonic() - began


def test_a_command_that_others_kept_from_the_core_is_starved():
    with on_one_core(0, 19) as (_, meek):
        wall_s = until_waited(meek, 0.3)
        assert starved(meek, wall_s=wall_s, cpu_s=None, cpus=1.0)


def test_one_that_sleeps_is_not():
    with subprocess.Popen(["sleep", "100"]) as process:
        assert not starved(process.pid, wall_s=0.5, cpu_s=None, cpus=1.0)
        process.kill()


def test_one_that_used_its_share_of_the_quota_is_not_whatever_it_waited():
    with on_one_core(0, 19) as (_, meek):
        wall_s = until_waited(meek, 0.3)
        assert not starved(meek, wall_s=wall_s, cpu_s=0.5 * wall_s, cpus=1.0)


def test_a_child_of_the_command_counts():
    script = f"{sys.executable} -c '{SPIN}' 19; true"
    core = min(os.sched_getaffinity(0))
    command = subprocess.Popen(
        ["bash", "-c", script], stdout=subprocess.PIPE, start_new_session=True
    )
    with on_one_core(0), command as shell:
        assert shell.stdout is not None
        shell.stdout.readline()
        children = Path(f"/proc/{shell.pid}/task/{shell.pid}/children").read_text().split()
        os.sched_setaffinity(int(children[0]), {core})
        wall_s = until_waited(int(children[0]), 0.3)
        assert starved(shell.pid, wall_s=wall_s, cpu_s=None, cpus=1.0)
        os.killpg(shell.pid, signal.SIGKILL)


def test_one_that_has_ended_is_not():
    with subprocess.Popen(["true"]) as process:
        process.wait()
    assert not starved(process.pid, wall_s=1.0, cpu_s=None, cpus=1.0)
