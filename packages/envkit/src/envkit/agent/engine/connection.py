# SPDX-License-Identifier: Apache-2.0
"""The HTTP connection to one engine, and the names of what goes wrong on it.

Streams are bounded by their silence and not by their length: what goes on is never cut.
Whatever aiohttp raises leaves as one of envkit's own errors.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, Self

import aiohttp
import orjson
from yarl import URL

from envkit.agent.engine.events import DONE, Events
from envkit.agent.engine.options import EngineOptions
from envkit.agent.engine.refusal import SHOWN, error_in, refusal
from envkit.deadline import deadline, idle_deadline
from envkit.fault import EngineGarbage, EngineRefused, EngineUnreachable

CONNECT_S: Final = 10.0
"""A handshake on the way to an engine; one that is silent as long does not take connections."""
ASK_S: Final = 30.0
"""A question about the engine itself, behind a crowd of others."""
KEPT_S: Final = 3.0
"""A connection is used again within this time: vLLM's server closes it after 5 s, and a request
that meets the close would fail for nothing."""


class Connection:
    """One session; requests that follow each other share one connection."""

    def __init__(self, options: EngineOptions) -> None:
        self._options = options
        self._base = _url(options.base)
        self._urls: dict[str, URL] = {}
        head = {"Content-Type": "application/json"}
        if options.token:
            head["Authorization"] = f"Bearer {options.token}"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=head,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def status_of(self, path: str, body: bytes) -> int:
        """What it answers to a body, by its status alone; raises as `ask` does where it broke."""
        async with deadline("generate", ASK_S), _named(), self._post(path, body) as response:
            said = await response.read()
            if response.status >= 500:
                raise refusal(response.status, said)
            return response.status

    async def ask(self, path: str) -> Any:
        """A JSON answer to a GET.

        Raises what `refusal` says of its status, EngineUnreachable, EngineGarbage, and
        DeadlineExceeded (op ``generate``).
        """
        async with deadline("generate", ASK_S), _named():
            async with self._session.get(self._url(path)) as response:
                body = await response.read()
            if response.status != 200:
                raise refusal(response.status, body)
        return _json(body)

    async def tell(self, path: str, body: bytes, seconds: float) -> None:
        """Send what needs no answer."""
        async with deadline("generate", seconds), _named(), self._post(path, body) as response:
            await response.read()

    async def post(self, path: str, body: bytes, take: Callable[[bytes], None]) -> bool:
        """Give each payload of the answer to ``take``: one where it is whole, else one an event.

        Returns whether it was a stream. Raises as `ask` does, and DeadlineExceeded with op
        ``generate_idle`` where a stream falls silent; EngineUnreachable where it ends before its
        end; and what ``take`` raises.
        """
        budgets = self._options.budgets
        async with (
            idle_deadline("generate", budgets.generate_s, budgets.generate_idle_s) as progress,
            _named(),
            self._post(path, body) as response,
        ):
            if response.status != 200:
                after = response.headers.get("Retry-After", "")
                raise refusal(response.status, await response.read(), after)
            streams = response.content_type == "text/event-stream"
            if streams:
                await _stream(response, take, progress)
            else:
                take(await response.read())
            return streams

    def _post(self, path: str, body: bytes) -> Any:
        return self._session.post(self._url(path), data=body)

    def _url(self, path: str) -> URL:
        if path not in self._urls:
            self._urls[path] = self._base.with_path(self._base.path.rstrip("/") + path)
        return self._urls[path]


async def _stream(
    response: aiohttp.ClientResponse, take: Callable[[bytes], None], progress: Callable[[], None]
) -> None:
    events, done = Events(), False
    async for chunk in response.content.iter_any():
        for payload in events.feed(chunk):
            if payload == DONE:
                done = True
                continue
            if (error := error_in(payload)) is not None:
                raise error
            progress()
            take(payload)
    if not done:
        raise EngineUnreachable("the engine's stream ended before its end")


def _url(text: str) -> URL:
    try:
        url = URL(text)
    except ValueError:
        url = URL("")
    if url.scheme not in ("http", "https") or not url.host:
        raise EngineRefused(f"{text!r} is no engine's URL: give http://HOST:PORT")
    return url


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except ValueError as error:
        shown = body[:SHOWN].decode(errors="replace")
        raise EngineGarbage(f"the engine's answer is no JSON: {shown!r}") from error


@asynccontextmanager
async def _named() -> AsyncGenerator[None]:
    """Give aiohttp's errors their names here."""
    try:
        yield
    except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, OSError) as error:
        if type(error) is TimeoutError:
            raise
        raise EngineUnreachable(f"{type(error).__name__}: {error}") from error
    except aiohttp.ClientError as error:
        raise EngineGarbage(f"{type(error).__name__}: {error}") from error
