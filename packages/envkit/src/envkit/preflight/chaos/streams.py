# SPDX-License-Identifier: Apache-2.0
"""Streams of files that are bent on their way into or out of a box, and a host without room."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
from collections.abc import Callable, Generator
from typing import Any, Final

from envkit.preflight.chaos.wire import NOISE

_CUT: Final = 515
"""Bytes of a stream that end inside its first file."""

BENDS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "garbage": lambda stream: NOISE * 16,
    "cut": lambda stream: stream[:_CUT],
    "empty": lambda stream: b"",
}
"""By kind: what arrives of a stream."""

type Transfer = Callable[[str, str, list[int]], Any]


async def bend_up(
    transfer: Transfer, what: str, path: str, source: int, bend: Callable[[bytes], bytes]
) -> int:
    stream = await asyncio.to_thread(_read_all, os.dup(source))
    read_end, write_end = os.pipe()
    asking = asyncio.ensure_future(transfer(what, path, [read_end]))
    await asyncio.sleep(0)  # it is sent: our copy of the end can go
    os.close(read_end)
    await asyncio.to_thread(_write_all, write_end, bend(stream))
    return await asking


async def bend_down(
    transfer: Transfer, what: str, path: str, target: int, bend: Callable[[bytes], bytes]
) -> int:
    target = os.dup(target)
    read_end, write_end = os.pipe()
    asking = asyncio.ensure_future(transfer(what, path, [write_end]))
    await asyncio.sleep(0)  # it is sent: our copy of the end can go
    os.close(write_end)
    stream = await asyncio.to_thread(_read_all, read_end)
    await asyncio.to_thread(_write_all, target, bend(stream))
    return await asking


@contextlib.contextmanager
def full_disk() -> Generator[None]:
    """Files of this process may not grow: the kernel refuses with EFBIG, as with ENOSPC."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _read_all(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as stream:
        return stream.read()


def _write_all(fd: int, stream: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), os.fdopen(fd, "wb") as target:
        target.write(stream)
