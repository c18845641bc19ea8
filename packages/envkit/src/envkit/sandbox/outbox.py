# SPDX-License-Identifier: Apache-2.0
"""Frames on their way out of a socket, without ever making the loop wait.

Contract: frames leave whole and in the order they were put. What the kernel does not take at once
waits here, with descriptors of its own, until the peer reads. Two loops that talk to each other
must not block in sending: each would wait for the other to read. A peer that takes nothing for
``stall_s`` counts as gone, so that what waits for it stays bounded.
"""

from __future__ import annotations

import array
import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

STALL_S: Final = 10.0
"""A peer that takes nothing for so long counts as gone: it must not stop the others."""


class Outbox:
    """The sending half of a non-blocking stream socket in the running loop."""

    def __init__(
        self, sock: socket.socket, on_lost: Callable[[], None], stall_s: float = STALL_S
    ) -> None:
        """``on_lost`` is called once, when the peer is gone or has stalled."""
        self._sock = sock
        self._on_lost = on_lost
        self._stall_s = stall_s
        self._loop = asyncio.get_running_loop()
        self._frames: deque[tuple[memoryview, tuple[int, ...]]] = deque()
        self._stall: asyncio.TimerHandle | None = None

    def put(self, frame: bytes, fds: Sequence[int] = ()) -> None:
        """Send a frame now, or as soon as the peer reads; ``fds`` stay the caller's.

        Raises:
            OSError: the peer is gone.
        """
        rest, rights = memoryview(frame), tuple(fds)
        if not self._frames:
            rest, rights = self._sent(rest, rights)
            if not rest:
                return
            self._loop.add_writer(self._sock.fileno(), self._flush)
            self._watch()
        self._frames.append((rest, tuple(os.dup(fd) for fd in rights)))

    def close(self) -> None:
        """Forget what did not go out; call before the socket is closed."""
        if self._frames:
            self._loop.remove_writer(self._sock.fileno())
        self._unwatch()
        while self._frames:
            _close(self._frames.popleft()[1])

    def _flush(self) -> None:
        try:
            while self._frames:
                rest, rights = self._frames[0]
                left, kept = self._sent(rest, rights)
                if len(left) == len(rest):
                    return
                self._watch()
                if not kept:
                    _close(rights)
                if left:
                    self._frames[0] = (left, kept)
                    return
                self._frames.popleft()
        except OSError:
            self._on_lost()
            return
        self._loop.remove_writer(self._sock.fileno())
        self._unwatch()

    def _sent(self, data: memoryview, fds: tuple[int, ...]) -> tuple[memoryview, tuple[int, ...]]:
        """What is left of a frame; its descriptors go with its first byte."""
        while data:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
            try:
                taken = self._sock.sendmsg([data], rights)
            except BlockingIOError:
                break
            data, fds = data[taken:], ()
        return data, fds

    def _watch(self) -> None:
        """The peer has just taken something, or has just begun not to."""
        self._unwatch()
        self._stall = self._loop.call_later(self._stall_s, self._on_lost)

    def _unwatch(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None


def _close(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)
