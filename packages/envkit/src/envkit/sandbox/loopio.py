# SPDX-License-Identifier: Apache-2.0
"""Waiting for descriptors and children in the running loop, without threads."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Final

_CHUNK: Final = 1 << 16


async def readable(fd: int) -> None:
    """Wait until ``fd`` has something to read or its other end is closed."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    with _watched(loop, fd, ready):
        await ready


async def writable(fd: int) -> None:
    """Wait until ``fd`` takes something or its other end is closed."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_writer(fd, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_writer(fd)


async def read_some(fd: int, limit: int) -> bytes:
    """One read of at most ``limit`` bytes; empty at the end."""
    await readable(fd)
    return os.read(fd, limit)


async def read_json_object(fd: int) -> bytes:
    """Read until a closing brace ends the data: bubblewrap keeps its info descriptor open."""
    data = b""
    while not data.rstrip().endswith(b"}"):
        more = await read_some(fd, _CHUNK)
        if not more:
            break
        data += more
    return data


def ended(pidfd: int) -> bool:
    """Whether the process behind a process descriptor has ended."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended and what it and its waited-for children used."""

    code: int
    """As :func:`os.waitstatus_to_exitcode` gives it: negative for a signal."""
    cpu_s: float
    peak_memory_mib: float
    own_cpu_s: float
    """Its own part of ``cpu_s``, without its children's."""


async def wait_child(pid: int) -> Ended:
    """Wait for a child of this process and reap it."""
    fd = os.pidfd_open(pid)
    try:
        await readable(fd)
        own_cpu_s = cpu_s_of(pid)
        _, status, used = os.wait4(pid, 0)  # noqa: ASYNC222 - it has ended: the pidfd says so
    finally:
        os.close(fd)
    code = os.waitstatus_to_exitcode(status)
    return Ended(code, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, own_cpu_s)


def cpu_s_of(pid: int) -> float:
    """CPU seconds of a process that was not waited for yet, by its clock (clock_getcpuclockid(3)).

    Nothing for one that is gone.
    """
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0


@contextlib.contextmanager
def _watched(
    loop: asyncio.AbstractEventLoop, fd: int, ready: asyncio.Future[None]
) -> Generator[None]:
    def announce() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(fd, announce)
    try:
        yield
    finally:
        loop.remove_reader(fd)
