# SPDX-License-Identifier: Apache-2.0
"""Waiting on pipes and processes from the event loop, without a thread.

asyncio's own subprocess support waits for the pipes as well as for the process, so a child left
in the background would hold a call; and its thread watcher would break a later fork.
"""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

from envkit.sandbox import loopio

CHUNK = 1 << 16


@asynccontextmanager
async def reading(fd: int, feed: Callable[[bytes], None]) -> AsyncGenerator[asyncio.Future[None]]:
    """Feed what arrives on `fd` while the block runs; yields a future done at end of file.

    Owns `fd` and closes it at the end.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    os.set_blocking(fd, False)

    def ready() -> None:
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            feed(data)
            return
        loop.remove_reader(fd)
        if not ended.done():
            ended.set_result(None)

    loop.add_reader(fd, ready)
    try:
        yield ended
    finally:
        loop.remove_reader(fd)
        os.close(fd)
        ended.cancel()


async def read_some(fd: int) -> bytes:
    """The next piece from a non-blocking `fd`; empty at end of file."""
    while True:
        try:
            return os.read(fd, CHUNK)
        except BlockingIOError:
            await _ready(fd, writing=False)


async def write_all(fd: int, data: bytes) -> None:
    """Write all of `data` to a non-blocking `fd`; raises BrokenPipeError when nobody reads."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            await _ready(fd, writing=True)


async def _ready(fd: int, *, writing: bool) -> None:
    loop = asyncio.get_running_loop()
    add, remove = loop.add_reader, loop.remove_reader
    if writing:
        add, remove = loop.add_writer, loop.remove_writer
    ready: asyncio.Future[None] = loop.create_future()
    add(fd, lambda: ready.done() or ready.set_result(None))
    try:
        await ready
    finally:
        remove(fd)


async def exit_status(pid: int) -> int:
    """Wait until child `pid` has ended and reap it; minus the signal when one ended it."""
    return (await loopio.wait_child(pid)).code


def kill(pid: int, *, group: bool = False) -> None:
    """SIGKILL a child of ours, or its process group; silent when it is already gone."""
    with suppress(ProcessLookupError, PermissionError):
        (os.killpg if group else os.kill)(pid, signal.SIGKILL)


def reap_later(pid: int) -> None:
    """Collect a killed child when the kernel lets go of it, without waiting for that now."""
    if os.waitpid(pid, os.WNOHANG)[0]:
        return
    loop = asyncio.get_running_loop()
    pidfd = os.pidfd_open(pid)

    def collect() -> None:
        loop.remove_reader(pidfd)
        os.close(pidfd)
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)

    loop.add_reader(pidfd, collect)
