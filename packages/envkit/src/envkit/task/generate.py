# SPDX-License-Identifier: Apache-2.0
"""Running a world's generator: a Python script of the world, in a process of its own.

`python SCRIPT OUT` writes below `OUT/filesystem` and `OUT/apps_data`. It runs in this Python's
environment with hash seed, time zone and locale fixed, and its whole process group is ended
when its time is over.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

from envkit.deadline import DeadlineExceeded
from envkit.fault import TaskError
from envkit.task.types import Generator

_LAST_WORDS = 400
"""Characters of the script's stderr that an error carries."""


def generate(generator: Generator, out: Path) -> None:
    """Run the script; raises `TaskError` with its last words, or `DeadlineExceeded`."""
    command = [sys.executable, "-s", "-E", "-B", str(generator.script), str(out)]
    with subprocess.Popen(
        command,
        cwd=generator.script.parent,
        env=_environment(out.parent),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            _, stderr = process.communicate(timeout=generator.timeout_s)
        except subprocess.TimeoutExpired as cause:
            raise DeadlineExceeded("world_generate", generator.timeout_s) from cause
        finally:
            _end_group(process.pid)
    if process.returncode != 0:
        words = " ".join(stderr.decode(errors="replace").split())[-_LAST_WORDS:]
        message = f"{generator.script}: exit {process.returncode}: {words}"
        raise TaskError(f"{message}; run it by hand: python {generator.script.name} OUT")


def _environment(home: Path) -> dict[str, str]:
    fixed = {"TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0", "HOME": str(home)}
    return {**fixed, "PATH": os.environ.get("PATH", os.defpath)}


def _end_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return
