# SPDX-License-Identifier: Apache-2.0
"""Requests to one engine, and the names of what goes wrong with them.

Streams are bounded by their silence and not by their length: what goes on is never cut. Whatever
the connection raises leaves as one of envkit's own errors.
"""

from __future__ import annotations

import time
from typing import Any, Final, NamedTuple, Self, cast
from urllib.parse import urlsplit

import orjson

from envkit.agent.engine.events import DONE, Events
from envkit.agent.engine.http import BODY_MOST, NotHttp
from envkit.agent.engine.line import Line, dial
from envkit.agent.engine.options import EngineOptions
from envkit.agent.engine.refusal import SHOWN, error_in, refusal
from envkit.fault import (
    EngineBusy,
    EngineFailed,
    EngineGarbage,
    EngineRefused,
    EngineUnreachable,
)

ASK_S: Final = 30.0
"""A question about the engine itself, behind a crowd of others."""

type Buffer = bytes | bytearray


class Reply(NamedTuple):
    """The answer to a request."""

    payloads: list[bytes]
    """One where it came whole, else one an event."""
    first_at: float | None
    """When the first event of a stream came, by the monotonic clock; None of what is no stream."""


class Connection:
    """All connections to one engine; requests that follow each other share one."""

    def __init__(self, options: EngineOptions) -> None:
        self._budgets = options.budgets
        self._host, self._port, self._tls, self._prefix, named = _parts(options.base)
        lines = [f"Host: {named}", "Accept-Encoding: identity", "Content-Type: application/json"]
        if options.token:
            lines.append(f"Authorization: Bearer {options.token}")
        self._fixed = "".join(f"{line}\r\n" for line in lines)
        self._heads: dict[tuple[str, str], bytes] = {}
        self._idle: list[Line] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        while self._idle:
            self._idle.pop().close()

    @property
    def kept(self) -> int:
        """Connections that the next request may go out on."""
        return sum(line.fresh for line in self._idle)

    async def status_of(self, path: str, body: bytes) -> int:
        """What it answers to a body, by its status alone.

        Raises as `ask` does where it broke, and where it may answer otherwise later.
        """
        line = await self._asked("POST", path, body, seconds=ASK_S)
        with self._named(line):
            said = await _whole(line)
        error = refusal(line.response.status, said)
        if isinstance(error, EngineBusy | EngineFailed):
            raise error
        return line.response.status

    async def ask(self, path: str) -> dict[str, Any]:
        """The JSON object that answers a GET.

        Raises what `refusal` says of its status, EngineUnreachable, EngineGarbage, and
        DeadlineExceeded (op ``generate``).
        """
        line = await self._asked("GET", path, seconds=ASK_S)
        with self._named(line):
            body = await _whole(line)
        if line.response.status != 200:
            raise refusal(line.response.status, body)
        return _object(body)

    async def tell(self, path: str, body: bytes, seconds: float) -> None:
        """Send what needs no answer."""
        line = await self._asked("POST", path, body, seconds=seconds)
        with self._named(line):
            await _whole(line)

    async def post(self, path: str, *body: Buffer) -> Reply:
        """What is answered to a POST, whole or event by event, once it is all there.

        Raises as `ask` does, and DeadlineExceeded with op ``generate_idle`` where a stream falls
        silent; EngineUnreachable where it ends before its end.
        """
        line = await self._asked("POST", path, *body, seconds=self._budgets.generate_s)
        with self._named(line):
            part = await line.part()
            response = line.response
            streams = response.headers.get(b"content-type", b"").startswith(b"text/event-stream")
            if streams and response.status == 200:
                return await _stream(line, part, self._budgets.generate_idle_s)
            whole = (part or b"") + await _whole(line)
        if response.status != 200:
            after = response.headers.get(b"retry-after", b"").decode("latin-1")
            raise refusal(response.status, whole, after)
        return Reply([whole], None)

    async def _asked(self, method: str, path: str, *body: Buffer, seconds: float) -> Line:
        """A connection on which a request is under way, for `_named` to look after."""
        head = self._heads.get((method, path))
        if head is None:
            text = f"{method} {self._prefix}{path} HTTP/1.1\r\n{self._fixed}"
            head = self._heads[(method, path)] = text.encode("latin-1")
        length = b"Content-Length: %d\r\n\r\n" % sum(map(len, body)) if body else b"\r\n"
        try:
            line = self._kept() or await dial(self._host, self._port, tls=self._tls)
        except OSError as error:
            raise _unreachable(error) from error
        line.ask(head, length, *body, op="generate", seconds=seconds)
        return line

    def _named(self, line: Line) -> _Named:
        return _Named(line, self._idle)

    def _kept(self) -> Line | None:
        """The connection used last; stale ones are closed."""
        while self._idle:
            line = self._idle.pop()
            if line.fresh:
                return line
            line.close()
        return None


class _Named:
    """Gives what goes wrong in an exchange its name, and keeps its line where nothing did."""

    __slots__ = ("_idle", "_line")

    def __init__(self, line: Line, idle: list[Line]) -> None:
        self._line, self._idle = line, idle

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if self._line.renew():
            self._idle.append(self._line)
        if isinstance(error, OSError):
            raise _unreachable(error) from error
        if isinstance(error, NotHttp):
            raise EngineGarbage(str(error)) from error


def _unreachable(error: OSError) -> EngineUnreachable:
    return EngineUnreachable(f"{type(error).__name__}: {error}")


async def _stream(line: Line, part: bytes | None, idle_s: float) -> Reply:
    events, payloads, first, left = Events(), list[bytes](), 0.0, BODY_MOST
    while part is not None:
        left -= len(part)
        if found := events.feed(part):
            line.progress("generate_idle", idle_s)
            first = first or time.monotonic()
            payloads += found
        if left < 0:
            raise EngineGarbage(f"the stream is longer than {BODY_MOST} bytes")
        if error := next(filter(None, map(error_in, found)), None):
            raise error
        part = await line.part()
    if not payloads or payloads.pop() != DONE:
        raise EngineUnreachable("the engine's stream ended before its end")
    if not payloads:
        raise EngineGarbage("the engine's stream holds nothing")
    return Reply(payloads, first)


async def _whole(line: Line) -> bytes:
    parts: list[bytes] = []
    left = BODY_MOST
    while (part := await line.part()) is not None:
        parts.append(part)
        left -= len(part)
        if left < 0:
            raise EngineGarbage(f"the answer is longer than {BODY_MOST} bytes")
    return b"".join(parts)


def _parts(text: str) -> tuple[str, int, bool, str, str]:
    """Host, port, whether by TLS, the path before every path, and the host as it is named."""
    try:
        url = urlsplit(text)
        host, port = url.hostname, url.port
    except ValueError:
        host, port, url = None, None, urlsplit("")
    if url.scheme not in ("http", "https") or not host:
        raise EngineRefused(f"{text!r} is no engine's URL: give http://HOST:PORT")
    tls = url.scheme == "https"
    return host, port or (443 if tls else 80), tls, url.path, url.netloc.rpartition("@")[2]


def _object(body: bytes) -> dict[str, Any]:
    shown = body[:SHOWN].decode(errors="replace")
    try:
        told: Any = orjson.loads(body)
    except ValueError as error:
        raise EngineGarbage(f"the engine's answer is no JSON: {shown!r}") from error
    if not isinstance(told, dict):
        raise EngineGarbage(f"the engine's answer is no JSON object: {shown!r}")
    return cast("dict[str, Any]", told)
