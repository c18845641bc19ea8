# SPDX-License-Identifier: Apache-2.0
"""What reaches from outside into processes, control groups and mounts, and sees that it took.

Contract: each returns what was seen of its effect, in words for the log, or raises ``OSError``
(``DeadlineExceeded`` where nothing was seen in time). It acts on processes by descriptor, so that a
number that was given to another is never struck.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from envkit.deadline import deadline
from envkit.sandbox import kernel, loopio

PATIENCE_S: Final = 20.0
"""To see an effect of the kernel's, on a machine where a thousand processes wait for two cores."""

PAUSE_S: Final = 1.0
"""Twenty times what a call takes, and far below any budget."""

_LOOK_S: Final = 0.01
_REMOUNT: Final = 32
"""MS_REMOUNT of mount(2)."""
_SLACK: Final = 1 << 16
"""Bytes above its use at which a group's limit can be set while it goes on using more."""
_TRIES: Final = 20


async def kill(pid: int) -> str:
    """SIGKILL a process and wait until the kernel has let go of it."""
    return await killed(pid)


def killed(pid: int) -> Coroutine[Any, Any, str]:
    """SIGKILL a process now; what is returned waits until the kernel has let go of it."""
    fd = os.pidfd_open(pid)
    signal.pidfd_send_signal(fd, signal.SIGKILL)
    return gone(fd, pid)


async def gone(fd: int, pid: int) -> str:
    """Wait until the process behind a descriptor has ended, and close that."""
    try:
        async with deadline("chaos", PATIENCE_S):
            await loopio.readable(fd)
    finally:
        os.close(fd)
    return f"process {pid} is gone"


async def killed_in(groups: Sequence[str]) -> str:
    """Wait until the kernel has killed in a control group for want of memory."""
    await _until(lambda: _oom_kills(groups) > 0)
    return f"{_oom_kills(groups)} processes were killed"


async def stop(pid: int) -> str:
    """SIGSTOP a process and wait until it stands still."""
    os.kill(pid, signal.SIGSTOP)
    await _until(lambda: _state(pid) == "T")
    return f"process {pid} stands still"


async def pause(pid: int) -> str:
    """Stop a process, and let it go on after a while: as one that waits for a disk."""
    await stop(pid)
    await asyncio.sleep(PAUSE_S)
    os.kill(pid, signal.SIGCONT)
    await _until(lambda: _state(pid) != "T")
    return f"process {pid} stood still for {PAUSE_S:g} s"


async def stopped_in(process_1: int) -> int:
    """Host pid of the process in a box that stands still."""
    return await _one_in(process_1, lambda pid: _state(pid) == "T")


def strike_self(number: signal.Signals, log: Callable[[str], None]) -> NoReturn:
    """Have a child of this process signal it, and log what came of it: the struck one cannot."""
    me = os.getpid()
    if os.fork() == 0:
        try:
            fd = os.pidfd_open(me)
            signal.pidfd_send_signal(fd, number)
            log(_seen(fd, me, number))
        finally:
            os._exit(0)
    while True:
        signal.pause()


def starve_of_memory(groups: Sequence[str], room: int = _SLACK) -> str:
    """Lower a group's limit of memory to ``room`` bytes above what it uses; the kernel kills there.

    Process 1 of a box is spared by its own setting.
    """
    limit, used = _memory_files(groups)
    for _ in range(_TRIES):
        ceiling = int(used.read_text()) + room
        with contextlib.suppress(OSError):  # it used more meanwhile
            limit.write_text(str(ceiling))
            return f"{limit} is {ceiling}"
    raise OSError(f"{limit} could not be lowered")


def fill(workspace: Path) -> str:
    """Shrink the file system of a box to what is in it: the next byte has no room."""
    for _ in range(_TRIES):
        stat = os.statvfs(workspace)
        size = max(1, stat.f_blocks - stat.f_bfree) * stat.f_frsize
        with contextlib.suppress(OSError):  # it grew meanwhile
            kernel.mount("envkit", workspace, "tmpfs", _REMOUNT, f"size={size}")
            return f"{workspace} has {os.statvfs(workspace).f_bavail} blocks left"
    raise OSError(f"{workspace} could not be shrunk")


async def _one_in(process_1: int, like: Callable[[int], bool]) -> int:
    found: list[int] = []

    def look() -> bool:
        found[:] = [pid for pid in _members(process_1) if like(pid)]
        return bool(found)

    await _until(look)
    return found[0]


async def _until(true: Callable[[], bool]) -> None:
    async with deadline("chaos", PATIENCE_S):
        while not true():  # noqa: ASYNC110 - it happens in another process
            await asyncio.sleep(_LOOK_S)


def _seen(fd: int, pid: int, number: signal.Signals) -> str:
    until = time.monotonic() + PATIENCE_S
    if number is signal.SIGKILL:
        ended = select.select([fd], [], [], PATIENCE_S)[0]
        return f"process {pid} is {'gone' if ended else 'still there'}"
    while _state(pid) != "T" and time.monotonic() < until:
        time.sleep(_LOOK_S)
    return f"process {pid} is in state {_state(pid)}"


def _memory_files(groups: Sequence[str]) -> tuple[Path, Path]:
    for group in map(Path, groups):
        for limit, used in (
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
            ("memory.max", "memory.current"),
        ):
            if (group / limit).exists():
                return group / limit, group / used
    raise OSError("no control group limits its memory")


def _oom_kills(groups: Sequence[str]) -> int:
    for events in (
        Path(group, name) for group in groups for name in ("memory.oom_control", "memory.events")
    ):
        with contextlib.suppress(OSError):
            pairs = dict(line.split() for line in events.read_text().splitlines())
            return int(pairs["oom_kill"])
    return 0


def _state(pid: int) -> str:
    """One letter, as in ps; empty once it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def _members(process_1: int) -> list[int]:
    """The other processes in the pid namespace of a process 1."""
    namespace = _link(process_1)
    return [pid for pid in _pids() if pid != process_1 and namespace and _link(pid) == namespace]


def _pids() -> Iterator[int]:
    return (int(entry) for entry in os.listdir("/proc") if entry.isdigit())


def _link(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""  # gone meanwhile, or not ours to look at
