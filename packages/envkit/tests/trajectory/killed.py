# SPDX-License-Identifier: Apache-2.0
"""``python killed.py DIRECTORY write|compact FUNCTION before|after NUMBER``: killed by SIGKILL.

The process does it itself before or after the NUMBER-th call of a function, ``module:name``.
``write`` appends rows in groups of two and prints each id once a commit has named it.
"""

import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from envkit.trajectory.compact import compact
from envkit.trajectory.writer import Writer

sys.path.insert(0, str(Path(__file__).parent))
from rows import trajectory  # type: ignore[import-not-found]


def kill_at(function: str, when: str, number: int) -> None:
    module, _, path = function.partition(":")
    *owners, name = path.split(".")
    owner: Any = import_module(module)
    for each in owners:
        owner = getattr(owner, each)
    real, calls = getattr(owner, name), 0

    def killing(*args: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if when == "before" and calls == number:
            os.kill(os.getpid(), signal.SIGKILL)
        done = real(*args, **more)
        if when == "after" and calls == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    setattr(owner, name, killing)


def write(directory: Path) -> None:
    with Writer.open(directory) as writer:
        for number in range(6):
            writer.append(trajectory(f"task__{number:03d}", seed=number, turns=2))
            if number % 2:
                print(*writer.commit(), sep="\n", flush=True)


if __name__ == "__main__":
    directory, action, function, when, number = sys.argv[1:]
    kill_at(function, when, int(number))
    (write if action == "write" else compact)(Path(directory))
