# SPDX-License-Identifier: Apache-2.0
"""Run a command in a box over a channel: pipes, a deadline, bounded output.

Contract: the call ends when the command's own process ends, even if something it left in the
background still holds its output. Output is kept up to a bound, the first and the last part.
A command that outlives its deadline is killed with its session and reported, not raised.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from envkit.deadline import deadline
from envkit.sandbox.channel import Channel
from envkit.sandbox.output import HeadTail

_CHUNK: Final = 1 << 16
_KILL_S: Final = 10.0
_FOREVER_S: Final = 1e9
_numbers = itertools.count(1)
_abandoned: set[asyncio.Future[Any]] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A command that ran in a box."""

    status: int
    """Exit status; 128 + n for signal n."""
    stdout: bytes
    stderr: bytes
    dropped: int
    """Bytes of output that were not kept; a line in the output says where."""
    timed_out: bool
    starved: bool
    """It outlived its limit because this machine had no core for it."""
    seconds: float
    oom_kills: int
    fork_refusals: int
    disk_full: bool


async def run(
    channel: Channel,
    argv: Sequence[str],
    *,
    box: str | None,
    env: Mapping[str, str],
    cwd: str,
    timeout_s: float | None,
    max_output: int,
    agent: bool = False,
) -> Finished:
    """Run ``argv``; ``box`` names it where the channel serves several.

    ``agent`` says that the agent asked for it, so that its time is the agent's.

    Raises:
        RequestFailed: the box is gone (code ``SandboxDied``).
        ChannelClosed: the fork server is gone.
    """
    name = f"{os.getpid()}.{next(_numbers)}"
    stdout, stderr = Collector(max_output), Collector(max_output)
    request: dict[str, Any] = {
        "argv": list(argv),
        "env": dict(env),
        "cwd": cwd,
        "exec": name,
        "agent": agent,
    }
    with _nothing() as nothing, stdout, stderr:
        fds = (nothing, stdout.give(), stderr.give())
        asking = asyncio.ensure_future(channel.ask("exec", fds, box=box, **request))
        await asyncio.sleep(0)  # the request is on its way: our copies of the ends can go
        stdout.close_given()
        stderr.close_given()
        try:
            timed_out = await _outlived(asking, timeout_s)
            if timed_out:
                await channel.ask("kill", box=box, exec=name, endless=True)
            async with deadline("exec", _KILL_S if timed_out else _FOREVER_S):
                answer = await asking
        except asyncio.CancelledError:
            _abandon(channel, box, name)
            raise
        return Finished(
            status=answer["status"],
            stdout=stdout.drain(),
            stderr=stderr.drain(),
            dropped=stdout.dropped + stderr.dropped,
            timed_out=timed_out,
            starved=answer["starved"],
            seconds=answer["seconds"],
            oom_kills=answer["oom_kills"],
            fork_refusals=answer["fork_refusals"],
            disk_full=answer["disk_full"],
        )


@contextlib.contextmanager
def _nothing() -> Generator[int]:
    """An empty standard input."""
    fd = os.open(os.devnull, os.O_RDONLY)
    try:
        yield fd
    finally:
        os.close(fd)


def _abandon(channel: Channel, box: str | None, name: str) -> None:
    """Kill a command whose caller no longer waits; the answer interests nobody."""
    task = asyncio.ensure_future(channel.ask("kill", box=box, exec=name, endless=False))
    _abandoned.add(task)
    task.add_done_callback(_forget)


def _forget(task: asyncio.Future[Any]) -> None:
    _abandoned.discard(task)
    if not task.cancelled():
        task.exception()  # a box that is gone needs no killing


async def _outlived(asking: asyncio.Future[Any], timeout_s: float | None) -> bool:
    done, _ = await asyncio.wait([asking], timeout=timeout_s)
    return not done


class Collector:
    """Reads one pipe in the running loop and keeps a bounded part of it."""

    def __init__(self, keep: int) -> None:
        self._kept = HeadTail(keep)
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> Collector:
        self._loop.add_reader(self._read, self._take)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.remove_reader(self._read)
        os.close(self._read)
        self.close_given()

    @property
    def dropped(self) -> int:
        """Bytes that were not kept."""
        return self._kept.dropped

    def give(self) -> int:
        """The write end, to be passed on."""
        return self._write

    def close_given(self) -> None:
        """Close our copy of the write end."""
        if self._write >= 0:
            os.close(self._write)
            self._write = -1

    def drain(self) -> bytes:
        """Everything written until now, without waiting for a writer that stays."""
        while self._take():
            pass
        return self._kept.bytes()

    def _take(self) -> bool:
        try:
            data = os.read(self._read, _CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self._loop.remove_reader(self._read)
            return False
        self._kept.feed(data)
        return True
