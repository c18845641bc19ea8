# SPDX-License-Identifier: Apache-2.0
"""Would a cold interpreter have done something that a warmed one cannot any more?

What an interpreter decides at its start (the locale, hash seed, paths) and what the warmed one
has imported already (where the program brings a module of that name) cannot be undone: then the
answer is `Cold`. Asked in the box itself, before anything of the program has run.
"""

from __future__ import annotations

import os
import resource
import stat
import sys
import zipimport
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from envkit.sandbox.warm.program import Cold, Program
from envkit.sandbox.warm.request import Request

_UTF8: Final = frozenset({b"C.UTF-8", b"C.utf8"})
_PYTHON: Final = frozenset({b"PYTHONPATH", b"PYTHONDONTWRITEBYTECODE", b"PYTHONUNBUFFERED"})
"""What of it is known here; the hash seed is the warmed parent's."""

_AT_LOAD: Final = (b"LD_", b"GLIBC_", b"MALLOC_", b"LOCPATH", b"NPY_", b"NUMPY_", b"PANDAS_")
"""Prefixes of what the loader and libraries read once, at their start."""

_SPACE: Final = (resource.RLIMIT_AS, resource.RLIMIT_DATA, resource.RLIMIT_STACK)
_ROOM: Final = 4
"""Where address space is limited, the warmed libraries may take no more than this part of it."""

_SUFFIXES: Final = (".py", ".pyc", ".so")


def judge_environment(asked: Request, program: Program) -> None:
    """Nothing in the environment may decide what is decided already.

    Raises:
        Cold: something does.
    """
    env = asked.env
    for name, value in env.items():
        if name.startswith(_AT_LOAD):
            raise Cold(f"{os.fsdecode(name)} in the environment")
        strange = name.startswith(b"PYTHON") and name not in _PYTHON
        strange = strange and (name, value) != (b"PYTHONHASHSEED", b"random")
        if strange and value and "E" not in program.flags:
            raise Cold(f"{os.fsdecode(name)} in the environment")
    chosen = env.get(b"LC_ALL") or env.get(b"LC_CTYPE") or env.get(b"LANG", b"")
    if chosen not in _UTF8:  # a plain one too: it sets the UTF-8 mode, which nothing can undo
        raise Cold(f"locale {os.fsdecode(chosen)}")


def judge_limits(asked: Request) -> None:
    """Take on lower limits of whoever asks.

    Raises:
        Cold: they bound what the warmed one has taken already.
    """
    for kind, (soft, hard) in asked.limits.items():
        mine = resource.getrlimit(kind)
        if mine == (soft, hard):
            continue
        if kind in _SPACE:
            raise Cold("a limit of address space")
        try:
            resource.setrlimit(kind, (soft, hard))
        except (ValueError, OSError) as error:
            raise Cold("a limit that cannot be taken on") from error
    space, _ = resource.getrlimit(resource.RLIMIT_AS)
    if space != resource.RLIM_INFINITY and _ROOM * _mapped() > space:
        raise Cold("too little address space for what is mapped already")


def judge_modules(directories: Collection[str], warmed: Collection[str], home: str) -> None:
    """Nothing that the program brings may stand before a module that is imported already.

    Raises:
        Cold: something does, or a user's own packages are there.
    """
    for directory in directories:
        for name in _importable(directory, warmed):
            raise Cold(f"{name} of its own in {directory}")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if home and os.path.isdir(os.path.join(home, ".local/lib", version, "site-packages")):
        raise Cold("packages of the user's own")


def read_script(path: str) -> bytes:
    """Source of a plain script.

    Raises:
        Cold: it is none, or cannot be read.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode) or path.endswith(".pyc"):
            raise Cold(f"{path} is no plain script")
        source = Path(path).read_bytes()
    except OSError as error:
        raise Cold(f"{path} cannot be read") from error
    try:
        zipimport.zipimporter(path)
    except zipimport.ZipImportError:
        return source
    raise Cold(f"{path} is an archive")


def _importable(directory: str, names: Collection[str]) -> Iterator[str]:
    """Which of ``names`` could be imported from there."""
    if os.path.isfile(directory):
        raise Cold(f"{directory} is an archive")
    try:
        with os.scandir(directory or ".") as entries:
            for entry in entries:
                name, dot, _ = entry.name.partition(".")
                if name not in names:
                    continue
                if entry.name.endswith(_SUFFIXES) if dot else _is_package(entry):
                    yield name
    except OSError:
        return  # what cannot be listed cannot be imported from


def _is_package(entry: os.DirEntry[str]) -> bool:
    """A directory without ``__init__`` gives way to a package that has one."""
    if not entry.is_dir():
        return False
    return any(name.startswith("__init__.") for name in os.listdir(entry.path))


def _mapped() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
