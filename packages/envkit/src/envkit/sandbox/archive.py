# SPDX-License-Identifier: Apache-2.0
"""Move files in and out of a box without running anything that the box holds.

The functions on paths run in a confined child inside the box, forked from trusted memory: an
agent may have replaced ``tar`` or ``bash`` in its box, and what it did to its files must reach
the verifier as it stands. Each answers with one of the exit statuses below.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tarfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO, Final, cast

DONE: Final = 0
FAILED: Final = 1
MISSING: Final = 2
TOO_BIG: Final = 3
FULL: Final = 4
"""The box has written all it may."""
BLOCKED: Final = 5
"""What the box holds stands in the way: a file where a directory is needed, no permission, a link
to where no file can be, a process that takes away what is written."""
IS_DIRECTORY: Final = 10
IS_FILE: Final = 11

_CHUNK: Final = 1 << 16
_END_MARK: Final = 1024
"""Bytes: an archive ends with at least two blocks of zeros."""

_UNNAMEABLE: Final = {errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL}
LONGEST_PATH: Final = 1024
"""Bytes. What lies deeper has no place below the longer names of the host, and is left out."""

_FULL: Final = {errno.ENOSPC, errno.EDQUOT}
_BLOCKED: Final = {
    errno.EACCES,
    errno.EBUSY,
    errno.EEXIST,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.ENOTEMPTY,
    errno.EPERM,
    errno.EROFS,
}


def pack(path: str, fd: int, limit: int) -> int:
    """Write ``path`` (a file, or what is in a directory) as a tar stream to ``fd``.

    Only directories, regular files and symbolic links travel. What its owner made unreadable is
    left out. Sparse files whose holes are more than ``limit`` bytes are TOO_BIG; what is really
    there is bounded by the box's storage.
    """
    if not os.path.exists(path):
        return MISSING
    if sum(_holes(info) for _, info in _members(path)) > limit:
        return TOO_BIG
    with os.fdopen(fd, "wb") as stream, tarfile.open(fileobj=stream, mode="w|") as tar:
        for name, _ in _members(path):
            _add(tar, name, _inside(name, path))
    return DONE


def unpack(path: str, fd: int) -> int:
    """Extract the tar stream from ``fd`` below the directory ``path``, which is created."""
    with os.fdopen(fd, "rb") as stream:
        try:
            os.makedirs(path, exist_ok=True)
            with _whole(stream) as tar:
                tar.extractall(path, filter=_as_owner)
        except OSError as error:
            return FULL if error.errno in _FULL else _blocked(error, path)
    return DONE


def _blocked(error: OSError, path: str) -> int:
    """Behind a link of the box's own there may be any file system, with errors of its own."""
    led_away = any(map(os.path.islink, (path, *Path(path).parents)))
    return BLOCKED if error.errno in _BLOCKED or led_away else FAILED


def _add(tar: tarfile.TarFile, path: str, name: str) -> None:
    """Add one member; one that is gone or cannot be opened is left out, whoever made it so.

    Not by ``gettarinfo``, which asks the box's own /etc/passwd for names of users.
    """
    member = tarfile.TarInfo(name)
    try:
        info = os.lstat(path)
        link = os.readlink(path) if stat.S_ISLNK(info.st_mode) else ""
    except (FileNotFoundError, PermissionError):
        return
    member.mode, member.mtime = stat.S_IMODE(info.st_mode), int(info.st_mtime)
    if stat.S_ISREG(info.st_mode):
        _add_content(tar, member, path)
        return
    member.type, member.linkname = tarfile.SYMTYPE if link else tarfile.DIRTYPE, link
    tar.addfile(member)


def _add_content(tar: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return
    with os.fdopen(fd, "rb") as file:
        member.size = os.fstat(fd).st_size
        tar.addfile(member, cast("IO[bytes]", _Filled(file)))


class _Filled:
    """A file that is as long as it said, also where it is cut while it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        return self._file.read(size).ljust(size, b"\0")


def _holes(info: os.stat_result) -> int:
    """Bytes that a file claims and does not hold."""
    return max(0, info.st_size - 512 * info.st_blocks) if stat.S_ISREG(info.st_mode) else 0


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

    A name that this file system cannot hold is left out.

    Raises:
        tarfile.TarError, OSError: the stream is broken or not whole, or the disk is full.
    """
    target.mkdir(parents=True, exist_ok=True)
    with _whole(stream) as tar:
        for member in tar:
            try:
                tar.extract(member, target, filter=_hostile)
            except OSError as error:
                if error.errno not in _UNNAMEABLE:
                    raise


@contextlib.contextmanager
def _whole(stream: IO[bytes]) -> Generator[tarfile.TarFile]:
    """A stream's archive; raises `tarfile.ReadError` when it stops before its end mark.

    ``tarfile`` takes a stream that ends between two files for the whole.
    """
    watched = _Tail(stream)
    with tarfile.open(fileobj=cast("IO[bytes]", watched), mode="r|") as tar:
        yield tar
    while watched.read(_CHUNK):
        pass
    if watched.tail.strip(b"\0"):
        raise tarfile.ReadError("the stream ends before its end mark")


class _Tail:
    """Passes on what is read, and keeps the end of it."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.tail = b""

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self.tail = (self.tail + data)[-_END_MARK:]
        return data


def _hostile(member: tarfile.TarInfo, target: str) -> tarfile.TarInfo | None:
    """What a box may hand out; a link that leaves is dropped, it costs no other file."""
    try:
        return tarfile.data_filter(member, target)
    except tarfile.FilterError:
        return None


def _as_owner(member: tarfile.TarInfo, target: str) -> tarfile.TarInfo:
    """Inside the box everything belongs to its only user, whoever it was outside.

    What lies there already is removed first: writing into a pipe that nobody reads never ends.
    """
    place = os.path.join(target, member.name)
    if os.path.lexists(place) and not os.path.isdir(place):
        os.unlink(place)
    return tarfile.data_filter(member, target).replace(uid=0, gid=0, uname="", gname="", deep=False)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    return member.replace(uid=0, gid=0, uname="", gname="", deep=False)


def _members(path: str) -> Iterator[tuple[str, os.stat_result]]:
    if not os.path.isdir(path):
        yield os.path.realpath(path), os.stat(path)
        return
    for directory, names, files in os.walk(path):
        for name in sorted((*names, *files)):
            full = os.path.join(directory, name)
            if len(os.fsencode(full)) > LONGEST_PATH:
                continue
            with contextlib.suppress(OSError):  # listed but not searchable: left out
                info = os.lstat(full)
                if stat.S_IFMT(info.st_mode) in (stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK):
                    yield full, info


def _inside(name: str, path: str) -> str:
    return os.path.relpath(name, path) if os.path.isdir(path) else os.path.basename(path)
