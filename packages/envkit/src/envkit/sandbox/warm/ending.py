# SPDX-License-Identifier: Apache-2.0
"""End a program as an interpreter ends one: what it raised is said, its objects are finalised.

Only what was warmed stays as it is: taking it down would touch, and so copy, every page of it.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Collection
from types import ModuleType
from typing import Any, Final

_FLUSH_FAILED: Final = 120
"""As CPython exits when its standard output could not be flushed."""


def report(error: BaseException) -> int:
    """Say of what the program ended; returns its exit code, or minus a signal."""
    trace = error.__traceback__
    error.__traceback__ = trace.tb_next if trace else None  # without the frame that ran it
    if isinstance(error, SystemExit):
        return _exit_code(error.code)
    sys.last_exc = sys.last_value = error
    sys.last_type, sys.last_traceback = type(error), error.__traceback__
    _show(error)
    return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1


def _show(error: BaseException) -> None:
    hook: Callable[..., object] = getattr(sys, "excepthook", sys.__excepthook__)
    try:
        hook(type(error), error, error.__traceback__)
    except BaseException as second:
        if hook is not sys.__excepthook__ and sys.stderr is not None:
            second.__traceback__ = second.__traceback__ and second.__traceback__.tb_next
            sys.stderr.write("Error in sys.excepthook:\n")
            sys.__excepthook__(type(second), second, second.__traceback__)
            sys.stderr.write("\nOriginal exception was:\n")
            sys.__excepthook__(type(error), error, error.__traceback__)


def _exit_code(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF if -(1 << 63) <= code < 1 << 63 else 0xFF
    if sys.stderr is not None:
        sys.stderr.write(f"{code}\n")
    return 1


def end(status: int, kept: Collection[str], unraisable: type[Any]) -> None:
    """Finalise what the program made and exit with ``status``, or by minus a signal.

    ``kept`` names the modules that stay; ``unraisable`` is what ``sys.unraisablehook`` takes.
    """
    try:
        threading._shutdown()  # pyright: ignore
    except BaseException as error:
        _ignored(error, threading, unraisable)
    atexit._run_exitfuncs()  # pyright: ignore
    if not _flush(unraisable):
        status = _FLUSH_FAILED
    _take_down(kept)
    sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
    flush_quietly()
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def _take_down(kept: Collection[str]) -> None:
    """Let go of what the program made, as at the end of an interpreter.

    What was warmed stays: taking it down would touch, and so copy, every page of it.
    """
    sys.last_exc = sys.last_value = sys.last_type = sys.last_traceback = None  # pyright: ignore
    _flush_files()  # collected in a cycle, a file may lose its buffer before what it holds
    names = [name for name in sys.modules if name not in kept or name == "__main__"]
    modules: list[object] = [sys.modules[name] for name in names]
    weak = [weakref.ref(module) for module in modules if isinstance(module, ModuleType)]
    del modules
    for name in names:
        sys.modules.pop(name, None)
    gc.collect()
    for reference in reversed(weak):
        if (module := reference()) is not None:
            _clear(vars(module))
    gc.collect()
    _flush_files()


def _clear(names: dict[str, Any]) -> None:
    """Private names first, then the others, as CPython clears a module."""
    for name in [n for n in names if n.startswith("_") and not n.startswith("__")]:
        names[name] = None
    for name in [n for n in names if n != "__builtins__"]:
        names[name] = None


def _flush_files() -> None:
    """Every file the program has not closed; its text before its bytes."""
    kinds = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)
    files: list[Any] = [thing for thing in gc.get_objects() if type(thing) in kinds]
    for file in sorted(files, key=lambda file: type(file) is not io.TextIOWrapper):
        try:
            file.flush()
        except (OSError, ValueError):
            continue  # closed meanwhile, or nobody reads it: a finalizer would be silent too


def _flush(unraisable: type[Any]) -> bool:
    """Flush both streams; a failure of the first is said."""
    flushed = True
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not getattr(stream, "closed", False):
                stream.flush()
        except BaseException as error:
            flushed = False
            if stream is sys.stdout:
                _ignored(error, stream, unraisable)
    return flushed


def flush_quietly() -> None:
    """Both streams; a failure is nobody's business yet."""
    for stream in (sys.stderr, sys.stdout):
        try:
            if stream is not None:
                stream.flush()
        except BaseException:
            continue  # whatever a stream of the program's own does


def _ignored(error: BaseException, whose: object, unraisable: type[Any]) -> None:
    error.__traceback__ = None
    sys.unraisablehook(unraisable((type(error), error, None, None, whose)))
