# SPDX-License-Identifier: Apache-2.0
"""Read by every Python of a run whose path it is on: kills one of its processes at one exact place.

Contract: the code that runs is the product's own, unchanged. ``KILL_AT`` is ``MODULE:NAME:WHEN:
NUMBER:FILE``: the function, ``entered`` or ``left``, the how manieth time, and part of the name of
a file that it works on (empty for any). The process that comes there first leaves ``KILL_MARK`` and
dies by SIGKILL; no other one does after that.
"""

from __future__ import annotations

import inspect
import os
import signal
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import CodeType, FrameType, ModuleType
from typing import Any

EVENTS = sys.monitoring.events


class Watched(Loader):
    """Loads a module as it is, and then watches one function of it."""

    def __init__(self, loader: Any, function: str) -> None:
        self._loader, self._function = loader, function

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        found: Any = module
        for part in self._function.split("."):
            found = getattr(found, part)
        watch(inspect.unwrap(found).__code__)


class Finder(MetaPathFinder):
    """Only of the one module."""

    def __init__(self, module: str, function: str) -> None:
        self._module, self._function = module, function

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if name != self._module:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = Watched(spec.loader, self._function)
        return spec


def watch(code: CodeType) -> None:
    tool = sys.monitoring.DEBUGGER_ID
    when = EVENTS.PY_START if WHEN == "entered" else EVENTS.PY_RETURN
    sys.monitoring.use_tool_id(tool, "killing")
    sys.monitoring.register_callback(tool, when, come)
    sys.monitoring.set_local_events(tool, code, when)


def come(_code: CodeType, *_: Any) -> None:
    frame = inspect.currentframe()
    if FILE and FILE not in files_of(frame.f_back if frame else None):
        return
    LEFT[0] -= 1
    if LEFT[0] == 0 and mine():
        os.kill(os.getpid(), signal.SIGKILL)


def files_of(frame: FrameType | None) -> str:
    names: list[str] = []
    for _ in range(3):
        if frame is not None:
            names += [str(frame.f_locals.get(name, "")) for name in ("part", "path", "self")]
            frame = frame.f_back
    return " ".join(names)


def mine() -> bool:
    """Whether no other process was killed before."""
    try:
        fd = os.open(os.environ["KILL_MARK"], os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except FileExistsError:
        return False
    with open(fd, "w") as mark:
        mark.write(f"{os.getpid()} {' '.join(sys.argv[:3])}\n")
    return True


if "KILL_AT" in os.environ:
    MODULE, NAME, WHEN, NUMBER, FILE = os.environ["KILL_AT"].split(":")
    LEFT = [int(NUMBER)]
    sys.meta_path.insert(0, Finder(MODULE, NAME))
