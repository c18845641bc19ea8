# SPDX-License-Identifier: Apache-2.0
"""Answers that are the same for every gateway with the same tools, made once a process.

Contract: a client asks twice before its first call, what the server speaks and what tools there
are, and a forked gateway is asked by one client. The answer to the very same bytes is the very
same, so what a warmed parent answered before it forked is sent again, and nothing else is: not
another method, not an error, not what is longer or more than `MOST_ANSWERS`.
"""

from collections.abc import Hashable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

METHODS = (b"server/discover", b"tools/list")
MOST_ANSWERS = 16
"""Kept: a client makes two, and few kinds of clients ask one process."""
MOST_BYTES = 4096
"""Of a request that is looked up."""
_CHECKED = (b"authorization", b"host", b"origin", b"user-agent")
"""Headers that let a request in and say nothing about its answer."""

_answers: dict[Hashable, tuple[Message, Message]] = {}


class Remembered:
    """An ASGI application around another, behind the guard."""

    def __init__(self, app: ASGIApp, of: Hashable) -> None:
        """``of`` is all that the application's answers depend on, besides the request."""
        self._app = app
        self._of = of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer from memory, or pass on and remember."""
        if not _can_be_known(scope):
            return await self._app(scope, receive, send)
        first = await receive()
        headers = tuple(header for header in scope["headers"] if header[0] not in _CHECKED)
        key = (self._of, headers, first.get("body"))
        known = None if first.get("more_body") else _answers.get(key)
        if known is not None:
            await send(known[0])
            return await send(known[1])
        answer = _Answer(send)
        await self._app(scope, _again(first, receive), answer.send)
        whole = answer.is_whole and not first.get("more_body")
        if whole and len(_answers) < MOST_ANSWERS:
            _answers[key] = (answer.parts[0], answer.parts[1])


def _can_be_known(scope: Scope) -> bool:
    headers: dict[bytes, bytes] = dict(scope["headers"])
    length = headers.get(b"content-length", b"")
    return (
        scope["method"] == "POST"
        and headers.get(b"mcp-method") in METHODS
        and length.isdigit()
        and int(length) <= MOST_BYTES
    )


def _again(first: Message, receive: Receive) -> Receive:
    """What was received already, then the rest."""
    waiting = [first]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


class _Answer:
    """An answer on its way."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.parts: list[Message] = []

    async def send(self, message: Message) -> None:
        self.parts.append(message)
        await self._send(message)

    @property
    def is_whole(self) -> bool:
        """Whether it is a success in one piece."""
        if len(self.parts) != 2 or self.parts[0].get("status") != 200:
            return False
        return self.parts[1]["type"] == "http.response.body" and not self.parts[1].get("more_body")
