# SPDX-License-Identifier: Apache-2.0
"""Requests and answers over one Unix socket, in the running loop.

Contract: a channel is a capability. The server side offers exactly the operations it was built
with, so a gateway can run commands in its one box and nothing else. Requests run concurrently;
each answer carries the id of its request. When the peer is gone, every pending request fails
with :class:`ChannelClosed` and ``on_close`` runs once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import count
from typing import Any

from envkit.fault import HarnessError
from envkit.sandbox import wire
from envkit.sandbox.outbox import Outbox

Operation = Callable[[dict[str, Any], list[int]], Awaitable[dict[str, Any]]]
"""Takes the request and its descriptors, which it then owns; returns the answer."""

EventSink = Callable[[dict[str, Any]], None]


class ChannelClosed(HarnessError):
    """The process at the other end of a channel is gone."""


class RequestFailed(Exception):
    """The other end answered with an error."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


class Channel:
    """One end; offers ``operations`` and may itself ask."""

    def __init__(
        self,
        sock: socket.socket,
        operations: Mapping[str, Operation] | None = None,
        *,
        on_event: EventSink | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._outbox = Outbox(sock, on_lost=self.close)
        self._operations = operations or {}
        self._on_event = on_event
        self._on_close = on_close
        self._decoder = wire.Decoder()
        self._ids = count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._running: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self.closed = False
        self._loop.add_reader(sock.fileno(), self._read)

    async def ask(self, op: str, fds: Sequence[int] = (), **arguments: Any) -> dict[str, Any]:
        """Send a request and wait for its answer; the caller sets the deadline.

        Raises:
            RequestFailed: the other end answered with an error.
            ChannelClosed: the other end is gone.
        """
        request = next(self._ids)
        answer: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        self._waiting[request] = answer
        try:
            self._send({"id": request, "op": op, **arguments}, fds)
            return await answer
        finally:
            self._waiting.pop(request, None)

    def tell(self, event: str, **fields: Any) -> None:
        """Send an event that nobody answers; a peer that is gone is not an error."""
        with contextlib.suppress(ChannelClosed):
            self._send({"event": event, **fields})

    def close(self) -> None:
        """Stop reading, fail what waits, close the socket; safe to call twice."""
        if self.closed:
            return
        self.closed = True
        self._loop.remove_reader(self._sock.fileno())
        self._outbox.close()
        self._sock.close()
        self._decoder.close()
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(ChannelClosed("the sandbox server is gone"))
        for task in self._running:
            task.cancel()
        if self._on_close:
            self._on_close()

    def hang_up(self) -> None:
        """Close the socket when no loop runs any more; nobody is told."""
        self.closed = True
        self._sock.close()

    def _send(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        if self.closed:
            raise ChannelClosed("the sandbox server is gone")
        try:
            self._outbox.put(wire.frame(message, len(fds)), fds)
        except OSError as error:
            self.close()  # half a frame may have gone out: nothing after it could be read
            raise ChannelClosed(f"the sandbox server is gone: {error.strerror}") from error

    def _read(self) -> None:
        try:
            alive = self._decoder.receive(self._sock)
            for message, fds in self._decoder.frames():
                self._dispatch(message, fds)
        except BlockingIOError:
            return
        except (OSError, wire.WireError):
            alive = False
        if not alive:
            self.close()

    def _dispatch(self, message: dict[str, Any], fds: list[int]) -> None:
        if "event" in message:
            if self._on_event:
                self._on_event(message)
        elif "op" in message:
            task = self._loop.create_task(self._answer(message, fds))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        else:
            self._settle(message)

    def _settle(self, message: dict[str, Any]) -> None:
        answer = self._waiting.get(int(message["id"]))
        if answer is None or answer.done():
            return
        if message.get("ok"):
            answer.set_result(message)
        else:
            answer.set_exception(RequestFailed(message["code"], message["message"]))

    async def _answer(self, message: dict[str, Any], fds: list[int]) -> None:
        reply: dict[str, Any] = {"id": message["id"]}
        try:
            operation = self._operations.get(message["op"])
            if operation is None:
                for fd in fds:
                    os.close(fd)
                raise RequestFailed("HarnessError", f"no operation {message['op']!r} here")
            reply |= {"ok": True, **await operation(message, fds)}
        except RequestFailed as error:
            reply |= {"ok": False, "code": error.code, "message": error.message}
        except Exception as error:
            reply |= {"ok": False, "code": type(error).__name__, "message": str(error)}
        with contextlib.suppress(ChannelClosed):
            self._send(reply)
