# SPDX-License-Identifier: Apache-2.0
"""Carry files into and out of a box over its channel, as tar streams through a pipe.

Contract: what went wrong is told apart by whose doing it is. A box that is full, or whose own
files stand in the way, is its agent's; a stream that breaks is the sandbox's; a file that is not
there is for the caller to judge.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tarfile
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path, PurePosixPath
from typing import IO, Final

from envkit.fault import DiskFull, EnvkitError, KilledOwnBox, TransferFailed
from envkit.sandbox import archive

Transfer = Callable[[str, str, list[int]], Awaitable[int]]
"""Asks the fork server for an operation on a path, with a pipe end; gives its exit status."""

_CHUNK: Final = 1 << 16


async def send_file(transfer: Transfer, source: Path, target: PurePosixPath) -> None:
    """Copy one file into the box.

    Raises:
        DiskFull, KilledOwnBox: what the box holds leaves no room for it.
        TransferFailed: it could not be carried.
    """
    await _send(
        transfer, str(target.parent), lambda out: archive.write_tree(source, out, target.name)
    )


async def send_dir(transfer: Transfer, source: Path, target: str) -> None:
    """Copy what is in a directory into the box; raises as `send_file`."""
    await _send(transfer, target, lambda out: archive.write_tree(source, out))


async def fetch_dir(transfer: Transfer, source: str, target: Path) -> None:
    """Copy what is in a directory of the box to ``target``.

    Raises:
        FileNotFoundError: it is not in the box.
        DiskFull: it claims to be larger than the box may be.
        TransferFailed: it could not be carried.
    """
    read_end, write_end = os.pipe()
    asking = asyncio.ensure_future(transfer("pack", source, [write_end]))
    await asyncio.sleep(0)  # it is sent: our copy of the end can go
    os.close(write_end)
    broken = await asyncio.to_thread(_extract, read_end, target)
    status = await asking
    if status == archive.MISSING:
        raise FileNotFoundError(f"{source} is not in the box")
    if status == archive.TOO_BIG:
        raise DiskFull(f"{source} in the box is larger than the box's storage")
    if status != archive.DONE or broken:
        raise TransferFailed(f"{source} in the box: {broken or 'could not be packed'}")


async def fetch_file(transfer: Transfer, source: str, target: Path) -> None:
    """Copy one file of the box to ``target``; raises as `fetch_dir`."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetched-") as holder:
        await fetch_dir(transfer, source, Path(holder))
        _take_only(Path(holder), source, target)


async def _send(transfer: Transfer, directory: str, write: Callable[[IO[bytes]], None]) -> None:
    read_end, write_end = os.pipe()
    asking = asyncio.ensure_future(transfer("unpack", directory, [read_end]))
    await asyncio.sleep(0)  # it is sent: our copy of the end can go
    os.close(read_end)
    with contextlib.suppress(BrokenPipeError):  # the box ended first; its status says why
        await asyncio.to_thread(_write, write_end, write)
    status = await asking
    if status != archive.DONE:
        raise _refused(status, directory)


def _refused(status: int, directory: str) -> EnvkitError:
    if status == archive.FULL:
        return DiskFull(f"{directory} in the box: the box has written all it may")
    if status == archive.BLOCKED:
        return KilledOwnBox(f"{directory} in the box: what the box holds stands in the way")
    return TransferFailed(f"{directory} in the box could not be written")


def _take_only(holder: Path, source: str, target: Path) -> None:
    """Move the one file that was fetched to its place."""
    found = next(holder.iterdir(), None)
    if found is None:
        raise FileNotFoundError(f"{source} in the box cannot be read")
    try:
        found.replace(target)
    except IsADirectoryError as error:
        raise KilledOwnBox(f"{source} in the box is a file where a directory was") from error


def _write(fd: int, write: Callable[[IO[bytes]], None]) -> None:
    with os.fdopen(fd, "wb") as stream:
        write(stream)


def _extract(fd: int, target: Path) -> str:
    """Extract a stream to its end; what was wrong with it, empty for nothing."""
    with os.fdopen(fd, "rb") as stream:
        try:
            archive.extract(stream, target)
        except tarfile.ReadError as error:
            while stream.read(_CHUNK):
                pass
            return str(error)
    return ""
