# SPDX-License-Identifier: Apache-2.0
"""``python kill_at.py POINT NUMBER WORDS...``: envkit, killed by SIGKILL at one exact place.

Contract: the code that runs is envkit's own, unchanged. The interpreter is asked to report when
one function of it is entered or left, and the process kills itself there, the NUMBER-th time; a
process that never comes there runs to its end. ``event`` counts what the run's journal takes in.
"""

from __future__ import annotations

import inspect
import os
import signal
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

MONITOR = sys.monitoring
ENTERED, LEFT = MONITOR.events.PY_START, MONITOR.events.PY_RETURN


@dataclass(frozen=True, kw_only=True)
class Point:
    """A place in envkit where its process can be killed."""

    function: str
    """``module:name``."""
    when: int = ENTERED
    phase: str = ""
    """Only where the function is given the event that a trial entered this phase."""


NOTE = "envkit.preflight.journal:Journal.note"

POINTS = {
    "preparing": Point(function="envkit.sandbox.prepare:prepare"),
    "before-the-first-box": Point(function="envkit.sandbox.session:_spawn"),
    "start-wave": Point(function=NOTE, phase="gateway"),
    "barrier": Point(function=NOTE, phase="hold"),
    "act": Point(function=NOTE, phase="act"),
    "grade": Point(function=NOTE, phase="grade"),
    "record-on-disk-but-not-said": Point(function="envkit.trial.record:write_record", when=LEFT),
    "teardown": Point(function=NOTE, phase="stop"),
    "cleanup": Point(function="envkit.sandbox.session:_end"),
    "report": Point(function="envkit.preflight.place:write_whole"),
    "event": Point(function=NOTE),
}


def main(name: str, number: int, words: list[str]) -> None:
    kill_at(POINTS[name], number)
    from envkit.cli import main as envkit

    sys.argv = ["envkit", *words]
    envkit()


def kill_at(point: Point, number: int) -> None:
    """From now on this process dies at the ``number``-th time it comes to the point."""
    left = [number]

    def here(code: types.CodeType, *_: Any) -> None:
        if not point.phase or _phase(inspect.currentframe()) == point.phase:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    tool = MONITOR.DEBUGGER_ID
    MONITOR.use_tool_id(tool, "kill_at")
    MONITOR.register_callback(tool, point.when, here)
    MONITOR.set_local_events(tool, _found(point.function).__code__, point.when)


def _found(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _phase(callback: types.FrameType | None) -> str:
    """Of the event that the function was entered with, which is what called the callback."""
    entered = callback.f_back if callback else None
    return getattr(entered.f_locals["event"], "phase", "") if entered else ""


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
