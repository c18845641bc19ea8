# SPDX-License-Identifier: Apache-2.0
"""Move files in and out of a box without running anything that the box holds.

The functions on paths run in a confined child inside the box, forked from trusted memory: an
agent may have replaced ``tar`` or ``bash`` in its box, and what it did to its files must reach
the verifier as it stands. Each answers with one of the exit statuses below.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

DONE: Final = 0
FAILED: Final = 1
MISSING: Final = 2
TOO_BIG: Final = 3
IS_DIRECTORY: Final = 10
IS_FILE: Final = 11


def pack(path: str, fd: int, limit: int) -> int:
    """Write ``path`` (a file, or what is in a directory) as a tar stream to ``fd``.

    Only directories, regular files and symbolic links travel. A file its owner made unreadable
    is left out. More than ``limit`` bytes (sparse files count in full) is TOO_BIG.
    """
    if not os.path.lexists(path):
        return MISSING
    if sum(info.st_size for _, info in _members(path)) > limit:
        return TOO_BIG
    with os.fdopen(fd, "wb") as stream, tarfile.open(fileobj=stream, mode="w|") as tar:
        for name, info in _members(path):
            if os.access(name, os.R_OK, follow_symlinks=False) or stat.S_ISLNK(info.st_mode):
                tar.add(name, _inside(name, path), recursive=False)
    return DONE


def unpack(path: str, fd: int) -> int:
    """Extract the tar stream from ``fd`` below the directory ``path``, which is created."""
    os.makedirs(path, exist_ok=True)
    with os.fdopen(fd, "rb") as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
        tar.extractall(path, filter=_as_owner)
    return DONE


def kind(path: str) -> int:
    """IS_DIRECTORY, IS_FILE or MISSING, symbolic links followed."""
    if os.path.isdir(path):
        return IS_DIRECTORY
    return IS_FILE if os.path.exists(path) else MISSING


def empty(path: str) -> int:
    """Make ``path`` an existing, empty directory."""
    os.makedirs(path, exist_ok=True)
    for entry in os.scandir(path):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)
    return DONE


def write_tree(source: Path, stream: IO[bytes], name: str | None = None) -> None:
    """Host side: a directory's content, or one file under ``name``, as a tar stream."""
    with tarfile.open(fileobj=stream, mode="w|") as tar:
        if name is not None:
            tar.add(source.resolve(), name, recursive=False, filter=_anonymous)
            return
        for entry in sorted(source.iterdir()):
            tar.add(entry, entry.name, filter=_anonymous)


def extract(stream: IO[bytes], target: Path) -> None:
    """Host side: extract what a box packed; nothing leaves ``target``.

    Raises:
        tarfile.TarError, OSError: the stream is broken or tries to leave.
    """
    target.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        tar.extractall(target, filter=_hostile)


def _hostile(member: tarfile.TarInfo, target: str) -> tarfile.TarInfo | None:
    """What a box may hand out; a link that leaves is dropped, it costs no other file."""
    try:
        return tarfile.data_filter(member, target)
    except tarfile.FilterError:
        return None


def _as_owner(member: tarfile.TarInfo, target: str) -> tarfile.TarInfo:
    """Inside the box everything belongs to its only user, whoever it was outside."""
    return tarfile.data_filter(member, target).replace(uid=0, gid=0, uname="", gname="", deep=False)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    return member.replace(uid=0, gid=0, uname="", gname="", deep=False)


def _members(path: str) -> Iterator[tuple[str, os.stat_result]]:
    top = os.lstat(path)
    if not stat.S_ISDIR(top.st_mode):
        yield path, os.stat(path) if stat.S_ISLNK(top.st_mode) else top
        return
    for directory, names, files in os.walk(path):
        for name in sorted((*names, *files)):
            full = os.path.join(directory, name)
            info = os.lstat(full)
            if (
                stat.S_ISDIR(info.st_mode)
                or stat.S_ISREG(info.st_mode)
                or stat.S_ISLNK(info.st_mode)
            ):
                yield full, info


def _inside(name: str, path: str) -> str:
    return os.path.basename(path) if name == path else os.path.relpath(name, path)
