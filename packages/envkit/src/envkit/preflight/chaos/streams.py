# SPDX-License-Identifier: Apache-2.0
"""Streams of files that are bent or slowed on their way, and a host without room."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import resource
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any, Final

from envkit.preflight.chaos.wire import NOISE
from envkit.sandbox import loopio

_CUT: Final = 515
"""Bytes of a stream that end inside its first file."""

_BENDS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "garbage": lambda stream: NOISE * 16,
    "cut": lambda stream: stream[:_CUT],
    "empty": lambda stream: b"",
}
"""By kind: what arrives of a stream."""

KINDS: Final = frozenset({*_BENDS, "trickle", "crawl"})

_WHOLE: Final = 4096
"""A pipe that takes anything takes so much."""

_SEEN: Final = 16
"""Pieces after which it is seen how slow a stream is; one that crawls is given up not long after,
and the smallest archive that tar makes has more."""

Flow = Callable[[int, int], Awaitable[None]]
"""Passes a stream on from a descriptor to another, and closes both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How the beginning of a stream passes; what comes after it passes as it comes."""

    piece: int
    """Bytes."""
    pause_s: float
    """After each piece."""
    pieces: float


_TRICKLE: Final = Pace(piece=512, pause_s=0.1, pieces=20)
"""Two seconds, and far below any budget."""


def flow(kind: str, hang_s: float, say: Callable[[str], None]) -> Flow:
    """How a stream passes; ``say`` is told, once, what became of it."""
    if bend := _BENDS.get(kind):
        return _bent(bend, lambda: say(kind))
    crawl = Pace(piece=1, pause_s=hang_s / 64, pieces=float("inf"))
    return _slowed(_TRICKLE if kind == "trickle" else crawl, say)


async def redirect(
    transfer: Callable[[str, str, list[int]], Any], what: str, path: str, fd: int, flow: Flow
) -> int:
    """A transfer whose stream passes by a flow of ours: into a box for ``unpack``, else out."""
    fd = os.dup(fd)  # the caller takes it for sent, and closes its own
    read_end, write_end = os.pipe()
    theirs, way = (read_end, (fd, write_end)) if what == "unpack" else (write_end, (read_end, fd))
    asking = asyncio.ensure_future(transfer(what, path, [theirs]))
    await asyncio.sleep(0)  # it is sent: our copy of the end can go
    os.close(theirs)
    await flow(*way)
    return await asking


def _bent(bend: Callable[[bytes], bytes], say: Callable[[], None]) -> Flow:
    async def pass_on(source: int, target: int) -> None:
        say()
        stream = await asyncio.to_thread(_read_all, source)
        await asyncio.to_thread(_write_all, target, bend(stream))

    return pass_on


def _slowed(pace: Pace, say: Callable[[str], None]) -> Flow:
    async def pass_on(source: int, target: int) -> None:
        began, passed = time.monotonic(), 0
        with contextlib.suppress(BrokenPipeError), _closed(source, target):
            async for number, piece in _pieces(source, pace):
                if number == _SEEN:
                    say(f"{passed} bytes passed in {time.monotonic() - began:.1f} s")
                await loopio.writable(target)
                passed += os.write(target, piece)

    return pass_on


async def _pieces(source: int, pace: Pace) -> AsyncGenerator[tuple[int, bytes]]:
    for number in itertools.count():
        slow = number < pace.pieces
        piece = await loopio.read_some(source, pace.piece if slow else _WHOLE)
        if not piece:
            return
        yield number, piece
        await asyncio.sleep(pace.pause_s if slow else 0)


@contextlib.contextmanager
def _closed(*fds: int) -> Generator[None]:
    try:
        yield
    finally:
        for fd in fds:
            os.close(fd)


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
