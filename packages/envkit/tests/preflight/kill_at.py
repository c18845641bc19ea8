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
    file: str = ""
    """Only where it, or what called it, works on a file of such a name."""


NOTE = "envkit.preflight.journal:Journal.note"
WRITE, SYNC = "envkit.durable:write_part", "envkit.durable:sync_file"
RENAME, LIST = "envkit.durable:publish", "envkit.durable:sync_directory"
SEGMENT, RECORD = "segment-", "envkit.json"

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
    "asked-on-disk": Point(function="envkit.preflight.asked:write_asked", when=LEFT),
    "tokenizer": Point(function="envkit.run.rows:keep_tokenizer"),
    "record-before-write": Point(function=WRITE, file=RECORD),
    "record-before-fsync": Point(function=SYNC, file=RECORD),
    "record-before-rename": Point(function=RENAME, file=RECORD),
    "record-after-rename": Point(function=RENAME, file=RECORD, when=LEFT),
    "segment-before-write": Point(function=WRITE, file=SEGMENT),
    "segment-before-fsync": Point(function=SYNC, file=SEGMENT),
    "segment-after-fsync": Point(function=SYNC, file=SEGMENT, when=LEFT),
    "segment-before-rename": Point(function=RENAME, file=SEGMENT),
    "segment-after-rename": Point(function=RENAME, file=SEGMENT, when=LEFT),
    "segment-before-its-name-is-fsynced": Point(function=LIST, file=SEGMENT),
    "segment-durable": Point(function=LIST, file=SEGMENT, when=LEFT),
    "ended-but-not-said": Point(function="envkit.run.events:Events.ended"),
    "ended-and-said": Point(function="envkit.run.events:Events.ended", when=LEFT),
    "any-fsync": Point(function=SYNC),
    "any-rename": Point(function=RENAME, when=LEFT),
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
        frame = inspect.currentframe()
        found = frame.f_back if frame else None  # the function that called the callback
        if point.phase in ("", _phase(found)) and point.file in _files(found):
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


def _phase(frame: types.FrameType | None) -> str:
    """Of the event that the function was entered with."""
    return getattr(frame.f_locals.get("event"), "phase", "") if frame else ""


def _files(frame: types.FrameType | None) -> str:
    """Names of the files that the function and its two callers work on."""
    names: list[str] = []
    for _ in range(3):
        if frame is not None:
            names += [str(frame.f_locals.get(name, "")) for name in ("part", "path")]
            frame = frame.f_back
    return " ".join(names)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
