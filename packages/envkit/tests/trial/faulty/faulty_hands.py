# SPDX-License-Identifier: Apache-2.0
"""What reaches into a trial from outside: processes by where they live or what they hold."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from envkit.deadline import deadline
from envkit.sandbox import loopio

_PATIENCE_S = 20.0
_LOOK_S = 0.005
_GATEWAY_SOCKETS = 8
"""It listens on two, commands go through a third, asyncio wakes itself by two, clients come."""


async def until(true: Callable[[], object]) -> None:
    """Wait for something that nothing announces."""
    async with deadline("test", _PATIENCE_S):
        while not true():  # noqa: ASYNC110 - it happens in another process
            await asyncio.sleep(_LOOK_S)


async def kill(pid: int) -> None:
    """SIGKILL a process and wait until the kernel has let go of it."""
    fd = os.pidfd_open(pid)
    try:
        signal.pidfd_send_signal(fd, signal.SIGKILL)
        await loopio.readable(fd)
    finally:
        os.close(fd)


def process_1(namespace: str) -> int:
    """Host pid of process 1 of a pid namespace, given as its link in /proc reads."""
    return next(pid for pid in _pids() if _link(pid) == namespace and _inner_pids(pid)[-1:] == [1])


async def gateway_with(inode: int) -> int:
    """Host pid of the gateway that listens on the socket with this inode.

    Every process that is just being forked holds the descriptors of others for a moment: the
    gateway is in a box with ``/.apps_data``, and has let go of all but its own.
    """
    found: list[int] = []

    def look() -> bool:
        found[:] = [pid for pid in _pids() if len(_inner_pids(pid)) > 1 and _serves(pid, inode)]
        return bool(found)

    await until(look)
    return found[0]


def _pids() -> Iterator[int]:
    return (int(entry) for entry in os.listdir("/proc") if entry.isdigit())


def _link(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""  # gone meanwhile, or not ours to look at


def _inner_pids(pid: int) -> list[int]:
    """Its pid in every namespace it is in, the host's first."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return []
    return [int(p) for line in lines if line.startswith("NSpid:") for p in line.split()[1:]]


def _serves(pid: int, inode: int) -> bool:
    try:
        links = [os.readlink(fd.path) for fd in os.scandir(f"/proc/{pid}/fd")]
    except OSError:
        return False
    own = sum(link.startswith("socket:") for link in links) <= _GATEWAY_SOCKETS
    return f"socket:[{inode}]" in links and own and os.path.isdir(f"/proc/{pid}/root/.apps_data")
