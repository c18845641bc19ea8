# SPDX-License-Identifier: Apache-2.0
"""One connection: a request, its response, and the next request.

Contract: a request goes out once, in one write. Whatever ends the connection ends the exchange that
uses it with an OSError; a response that is not read to its end takes its connection with it, by
which the engine learns that nobody waits. An exchange is bounded by its silence: `progress` says
that it goes on. The bound is one timer a connection that looks at a time now and then: a timer for
each event of each stream would cost more than reading them.
"""

from __future__ import annotations

import asyncio
import functools
import math
import os
import ssl
from collections.abc import Sequence
from typing import Final

from envkit.agent.engine.http import ResponseReader
from envkit.deadline import DeadlineExceeded

CONNECT_S: Final = 10.0
"""A handshake on the way to an engine; one that is silent as long does not take connections."""
KEPT_S: Final = 3.0
"""A connection is used again within this time: vLLM's server closes it after 5 s, and a request
that meets the close would fail for nothing."""


class Line(asyncio.Protocol):
    """A connection and the exchange on it."""

    def __init__(self, *, tls: bool = False) -> None:
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._fd = -1
        self._reader = ResponseReader()
        self._body: list[bytes] = []
        self._error: Exception | None = None
        self._closed = False
        self._waiter: asyncio.Future[None] | None = None
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._bound = ("", 0.0)

    @property
    def fresh(self) -> bool:
        """Whether the next request may go out on it."""
        return not self._closed and self._loop.time() - self._since < KEPT_S

    @property
    def response(self) -> ResponseReader:
        """Of the exchange under way; its head is whole once `part` returned."""
        return self._reader

    def ask(self, *request: bytes | bytearray, op: str, seconds: float) -> None:
        """Send a request that is to be answered, or to make progress, within so many seconds.

        Its parts are not copied: whoever changes one waits until the exchange is over (`renew`).
        """
        self._reader, self._body, self._error = ResponseReader(), [], None
        self.progress(op, seconds)
        assert self._transport is not None
        if self._tls:
            self._transport.write(b"".join(request))
        elif unsent := self._unsent(request):
            self._transport.writelines(unsent)

    def _unsent(self, request: Sequence[bytes | bytearray]) -> list[memoryview]:
        """Hand to the kernel what it takes at once, nearly always all of it; what is left.

        The transport, which takes the rest, keeps books on what it writes that a request needs not.
        """
        try:
            sent = os.writev(self._fd, request)
        except OSError:  # the transport meets it again, and knows what is to be done
            sent = 0
        if sent == sum(map(len, request)):
            return []
        left = list[memoryview]()
        for part in map(memoryview, request):
            if rest := part[sent:]:
                left.append(rest)
            sent = max(sent - len(part), 0)
        return left

    def progress(self, op: str, seconds: float) -> None:
        """It goes on, and is to again within so many seconds; ``op`` names that bound."""
        due = self._due = self._loop.time() + seconds
        self._bound = (op, seconds)
        if self._timer is not None and self._timer.when() > due:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_at(due, self._look)

    async def part(self) -> bytes | None:
        """More of the body, once the head is whole; None at its end.

        Raises OSError where the connection broke, NotHttp, and DeadlineExceeded.
        """
        while not self._body:
            if self._error is not None:
                raise self._error
            if self._reader.done:
                return None
            self._waiter = self._loop.create_future()
            await self._waiter
        parts, self._body = self._body, []
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def renew(self) -> bool:
        """Whether it is kept for the next request; else it is closed."""
        self._due = math.inf
        assert self._transport is not None
        unsent = self._transport.get_write_buffer_size()
        if self._closed or self._error is not None or unsent or not self._reader.keeps:
            self.close()  # which lets go of what is unsent, too
            return False
        self._since = self._loop.time()
        return True

    def close(self) -> None:
        """Close it at once."""
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Part of asyncio's protocol."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._fd = transport.get_extra_info("socket").fileno()

    def data_received(self, data: bytes) -> None:
        """Part of asyncio's protocol."""
        if self._reader.done:
            self.close()  # nobody asked for this
            return
        try:
            part = self._reader.feed(data)
        except Exception as error:
            self._error = error
            self.close()
            part = b""
        if part:
            self._body.append(part)
        if part or self._reader.done or self._error is not None:
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Part of asyncio's protocol."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        try:
            if exc is None:
                self._reader.end()
            elif not self._reader.done:
                self._error = self._error or exc
        except OSError as error:
            self._error = self._error or error
        self._wake()

    def _look(self) -> None:
        """At the time: whether it is due, or when to look again."""
        self._timer = None
        if self._loop.time() < self._due:
            if self._due < math.inf:
                self._timer = self._loop.call_at(self._due, self._look)
            return
        self._error = self._error or DeadlineExceeded(*self._bound)
        self.close()
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


async def dial(host: str, port: int, *, tls: bool) -> Line:
    """A new connection. Raises OSError, also where none is made within `CONNECT_S`."""
    loop = asyncio.get_running_loop()
    context = authorities() if tls else None
    try:
        async with asyncio.timeout(CONNECT_S):
            _, line = await loop.create_connection(
                functools.partial(Line, tls=tls), host, port, ssl=context
            )
    except TimeoutError as error:
        raise ConnectionError(f"{host}:{port} took no connection in {CONNECT_S:g} s") from error
    return line


@functools.cache
def authorities() -> ssl.SSLContext:
    """Whom to trust; read once a process, and only when needed."""
    return ssl.create_default_context()
