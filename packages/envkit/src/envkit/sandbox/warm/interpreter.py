# SPDX-License-Identifier: Apache-2.0
"""Become the asked program and run it.

Contract: what the program can see of its interpreter is what a cold one would show: arguments,
paths, flags, streams, ``__main__``, signals, exit codes, tracebacks, what is flushed and finalised
at the end. What differs is named here: modules are imported already (``sys.modules``), all forks of
one parent share its hash seed, and two frames lie below the program's own.
"""

from __future__ import annotations

import ctypes
import gc
import io
import os
import random
import runpy
import signal
import site
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import BuiltinImporter, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, Final

from envkit.sandbox.warm import ending, fitness
from envkit.sandbox.warm.program import Cold, Program, parse
from envkit.sandbox.warm.request import Request

_FLAG_NAMES: Final = {
    "dont_write_bytecode": "B",
    "ignore_environment": "E",
    "isolated": "I",
    "no_user_site": "s",
    "safe_path": "I",
}
_TUPLE_HEAD: Final = tuple.__basicsize__
_POINTER: Final = ctypes.sizeof(ctypes.c_void_p)
_OWN: Final = "envkit"

REAL: Final = f"/usr/local/bin/python{sys.version_info.major}.{sys.version_info.minor}"
"""What a box's interpreter is called where it has no shim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """What of the warmed parent its children must know."""

    modules: frozenset[str]
    """Names of everything that was imported before the first fork."""
    shadowable: frozenset[str]
    """Those that a program might bring itself: top names, without what every interpreter has."""
    unraisable: type[Any]
    """Type of what ``sys.unraisablehook`` takes."""


@dataclass(slots=True)
class Start:
    """A program that can start; until `run` nothing of it has."""

    program: Program
    asked: Request
    paths: list[str]
    source: str | bytes
    code: CodeType | None
    parent: Parent

    def run(self) -> None:
        """Run the program in this process and end it."""
        ended: BaseException | None = None
        try:
            if self.program.kind == "module":
                runpy._run_module_as_main(self.program.what)  # pyright: ignore
            else:
                exec(self._compiled(), vars(sys.modules["__main__"]))
        except BaseException as error:
            ended = error
        self.code = None
        if self.program.kind in ("script", "stdin"):
            ending.flush_quietly()  # as CPython at the end of a file
        status = (
            ending.report(ended) if ended else 0
        )  # outside: nothing is being handled in its hook
        del ended
        ending.end(status, self.parent.modules, self.parent.unraisable)

    def _compiled(self) -> CodeType:
        if self.program.kind == "stdin":
            with open(0, "rb", closefd=False) as file:
                self.source = file.read()
        return self.code or _compile(self.program, self.source)


def judge(asked: Request, parent: Parent) -> Start:
    """Everything that can be found out before the program starts.

    Raises:
        Cold: a cold interpreter must do it.
    """
    program = parse(asked.argv[1:])
    fitness.judge_environment(asked, program)
    fitness.judge_limits(asked)
    try:
        os.chdir(asked.cwd)
    except OSError as error:
        raise Cold("a directory that cannot be entered") from error
    given = _given_paths(asked.env, program)
    home = "" if "s" in program.flags else os.fsdecode(asked.env.get(b"HOME", b""))
    first = _first_path(program)
    fitness.judge_modules([*(first or ()), *given], parent.shadowable, home)
    known = [*given, *sys.path[1:]]
    paths = [*(first or ()), *dict.fromkeys(known)]
    source = _source(program)
    code = _early(program, source)
    return Start(program, asked, paths, source, code, parent)


def assume(start: Start) -> None:
    """Become the program's interpreter; its three streams lie on 0, 1 and 2 already."""
    _forget_own()
    if start.asked.umask is not None:
        os.umask(start.asked.umask)
    _set_environment(start.asked.env)
    _set_signals(start.asked.ignored)
    _set_system(start)
    _set_streams(unbuffered=_asks(start, "u", b"PYTHONUNBUFFERED"))
    _set_seeds()
    _set_main(start.program)
    gc.enable()


def _asks(start: Start, letter: str, name: bytes) -> bool:
    """A flag on the command line, or in the environment where that is read."""
    told = "E" not in start.program.flags and start.asked.env.get(name, b"") not in (b"", b"0")
    return told or letter in start.program.flags


def _given_paths(env: Mapping[bytes, bytes], program: Program) -> list[str]:
    text = "" if "E" in program.flags else os.fsdecode(env.get(b"PYTHONPATH", b""))
    return [os.path.abspath(entry) for entry in text.split(":")] if text else []


def _first_path(program: Program) -> tuple[str] | None:
    """``sys.path[0]``; none where paths are isolated."""
    if "I" in program.flags:
        return None
    if program.kind == "module":
        return (os.getcwd(),)
    if program.kind == "script":
        return (os.path.dirname(os.path.realpath(program.what)),)
    return ("",)


def _source(program: Program) -> str | bytes:
    if program.kind == "script":
        return fitness.read_script(program.what)
    if program.kind == "command" and not program.what.isprintable():
        try:
            program.what.encode()
        except UnicodeEncodeError as error:
            raise Cold("a command that is not UTF-8") from error
    return program.what


def _early(program: Program, source: str | bytes) -> CodeType | None:
    """The code, where compiling it says nothing: what it says belongs on the program's stream."""
    if program.kind in ("module", "stdin"):
        return None
    with warnings.catch_warnings(record=True) as said:
        try:
            code = _compile(program, source)
        except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
            raise Cold("a program that does not compile") from error
    return None if said else code


def _compile(program: Program, source: str | bytes) -> CodeType:
    names = {"command": "<string>", "stdin": "<stdin>"}
    name = names.get(program.kind) or _absolute(program.what)
    return compile(source, name, "exec", dont_inherit=True)


def _absolute(path: str) -> str:
    """As CPython makes it: neither normalised nor resolved."""
    return path if path.startswith("/") else f"{os.getcwd()}/{path}"


def _forget_own() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == _OWN]:
        del sys.modules[name]


def _set_environment(env: Mapping[bytes, bytes]) -> None:
    os.environ.clear()
    os.environb.update(env)
    time.tzset()


def _set_signals(ignored: Sequence[int]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


def _set_system(start: Start) -> None:
    program = start.program
    sys.argv[:] = program.argv
    sys.orig_argv[:] = start.asked.argv
    name = start.asked.argv[0]
    sys.executable = name if "/" in name else f"/usr/local/bin/{name}"
    setattr(sys, "_base_executable", sys.executable)  # noqa: B010 - no stub knows it
    sys.path[:] = start.paths
    for path in [p for p in sys.path_importer_cache if not p.startswith(sys.prefix)]:
        del sys.path_importer_cache[path]
    flags = {name: letter in program.flags for name, letter in _FLAG_NAMES.items()}
    flags["dont_write_bytecode"] = _asks(start, "B", b"PYTHONDONTWRITEBYTECODE")
    for flag, on in flags.items():
        _set_flag(flag, bool(on) if flag == "safe_path" else int(on))
    sys.dont_write_bytecode = flags["dont_write_bytecode"]
    _set_site(os.fsdecode(start.asked.env.get(b"HOME", b"")), user="s" not in program.flags)


def _set_flag(name: str, value: int) -> None:
    """``sys.flags`` is a tuple; only its memory can be changed. 0, 1 and True live for ever."""
    index = type(sys.flags).__match_args__.index(name)  # pyright: ignore
    cell = ctypes.py_object.from_address(id(sys.flags) + _TUPLE_HEAD + index * _POINTER)
    cell.value = value


def _set_site(home: str, *, user: bool) -> None:
    site.ENABLE_USER_SITE = user
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if home:
        site.USER_BASE = os.path.join(home, ".local")
        site.USER_SITE = os.path.join(site.USER_BASE, "lib", version, "site-packages")


def _set_streams(*, unbuffered: bool) -> None:
    sys.stdin = sys.__stdin__ = _stream(0, "r", "<stdin>", "surrogateescape", unbuffered)
    sys.stdout = sys.__stdout__ = _stream(1, "w", "<stdout>", "surrogateescape", unbuffered)
    sys.stderr = sys.__stderr__ = _stream(2, "w", "<stderr>", "backslashreplace", unbuffered)


def _stream(fd: int, mode: str, name: str, errors: str, unbuffered: bool) -> Any:
    """As CPython's ``create_stdio`` does it."""
    size = 0 if unbuffered and mode == "w" else -1
    binary: Any = open(fd, f"{mode}b", size, closefd=False)  # noqa: SIM115
    raw = getattr(binary, "raw", binary)
    raw.name = name
    lines = not unbuffered and (fd == 2 or raw.isatty())
    text: Any = io.TextIOWrapper(binary, "utf-8", errors, "\n", lines, unbuffered)
    text.mode = mode
    return text


def _set_seeds() -> None:
    """What forks of one parent would share, and cold interpreters do not."""
    random.seed()
    if numpy_random := sys.modules.get("numpy.random"):
        numpy_random.seed()
    process: Any
    tempfile: Any
    if tempfile := sys.modules.get("tempfile"):
        tempfile.tempdir = tempfile._name_sequence = None
    if process := sys.modules.get("multiprocessing.process"):
        config = process.current_process()._config
        config["authkey"] = process.AuthenticationString(os.urandom(32))
        process.ORIGINAL_DIR = os.getcwd()
    if spawn := sys.modules.get("multiprocessing.spawn"):
        spawn.set_executable(sys.executable)


def _set_main(program: Program) -> None:
    main: Any = ModuleType("__main__")
    main.__loader__ = BuiltinImporter
    main.__annotations__ = {}
    main.__builtins__ = sys.modules["builtins"]
    if program.kind == "script":
        main.__file__ = _absolute(program.what)
        main.__loader__ = SourceFileLoader("__main__", main.__file__)
        main.__cached__ = None
    if program.kind == "stdin":
        main.__file__, main.__cached__ = "<stdin>", None
    sys.modules["__main__"] = main
