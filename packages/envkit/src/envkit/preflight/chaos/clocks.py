# SPDX-License-Identifier: Apache-2.0
"""Clocks that are wrong in one process: what it reads, not what the machine's clocks say.

The monotonic clock cannot be moved for a process that runs: one with threads cannot enter another
time namespace. The wall clock belongs to the whole machine, and no namespace has one of its own.
"""

from __future__ import annotations

import ctypes
import gc
import os
import time
from datetime import UTC, datetime, timedelta
from typing import Any, Final

WRONG_S: Final = {"wall-clock-back": -86_400.0, "wall-clock-ahead": 86_400.0}
"""By kind, a day: more than any token, cache or time stamp is good for."""


def jump(seconds: float) -> str:
    """Let the monotonic clock of this process go on from a later time.

    As a process sees it whose machine was suspended.
    """
    real = time.monotonic
    time.monotonic = lambda: real() + seconds
    return f"the monotonic clock of process {os.getpid()} is {seconds:g} s later"


def skew(seconds: float) -> str:
    """Set the wall clock of this process wrong, back where negative: as in a machine whose is.

    For all that asks `time.time`, `time.time_ns` or `datetime.now`, whoever imported them as
    modules or as classes; files are dated by the kernel, which is right.
    """
    real, real_ns = time.time, time.time_ns
    time.time = lambda: real() + seconds
    time.time_ns = lambda: real_ns() + int(seconds * 1e9)
    _skew_datetime(timedelta(seconds=seconds))
    wrong_s = datetime.now(UTC).timestamp() - real()
    return f"the wall clock of process {os.getpid()} is wrong by {wrong_s:+.0f} s"


def _skew_datetime(by: timedelta) -> None:
    """In the class itself: whoever has imported it holds no other.

    Python lets nobody assign to a class of its own, so this goes by what the view of its
    attributes refers to, and has Python forget what it looked up there.
    """
    real = datetime.__dict__["now"]

    def now(cls: type[datetime], tz: Any = None) -> datetime:
        return real.__get__(None, cls)(tz) + by

    (attributes,) = gc.get_referents(datetime.__dict__)
    attributes["now"] = classmethod(now)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(datetime))
