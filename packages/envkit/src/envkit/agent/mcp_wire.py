# SPDX-License-Identifier: Apache-2.0
"""One JSON-RPC message out over streamable HTTP, and the message that answers it.

Contract: an answer comes as JSON or on an event stream; on a stream, progress and logs are passed
over, a server's own requests are declined, and a stream that breaks off is taken up again where the
server numbers its events. Nothing is sent twice: taking up a stream asks for what was answered.

Errors: `RpcError` for an error object, `HttpStatusError` and `NotMcp` for what is no answer, and
what `HttpLink` raises.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import h11
import orjson
from mcp_types import METHOD_NOT_FOUND

from envkit.agent.mcp_events import Event, EventReader, EventTooLong
from envkit.agent.mcp_http import HttpLink, Response

type Message = dict[str, Any]

RESUMES = 2
"""How often in a row a broken stream is taken up again without an event from it."""
RESUME_S = 1.0
"""Before that, where the server names no time."""
MOVES = 5
"""Redirects followed for one request."""
REFUSED = (401, 403)
"""HTTP status of who has no right to ask."""
_HEADERS = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
}


class RpcError(Exception):
    """The server answered with an error object."""

    def __init__(self, code: int, message: str, status: int) -> None:
        super().__init__(code, message, status)
        self.code = code
        self.message = message
        self.status = status
        """Of the HTTP response that it came with."""

    def __str__(self) -> str:
        return self.message


class HttpStatusError(Exception):
    """The server answered with an HTTP error."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status

    def __str__(self) -> str:
        return f"HTTP {self.status}"


class NotMcp(Exception):
    """The server answered what the protocol does not allow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A result, and what came around it."""

    result: Message
    body: bytes
    """The whole message as it came."""
    session: str
    """The session that the server opened with it, if any."""


class McpWire:
    """Messages to one server and back."""

    def __init__(self, link: HttpLink) -> None:
        self._link = link

    async def ask(self, message: Message, headers: Mapping[str, str]) -> Answer:
        """Send a request and wait for its answer; the caller sets the deadline."""
        body, sent = _written(message), {**_HEADERS, **headers}
        for _ in range(MOVES):
            async with self._link.exchange("POST", sent, body) as response:
                if self._link.moved(response):
                    await response.body()
                    continue
                heard = await self._heard(response, message["id"], headers)
            result = _result(heard, message["id"], response.status)
            session = response.header("mcp-session-id")
            return Answer(result=result, body=heard, session=session)
        raise NotMcp(f"it moved {MOVES} times")

    async def tell(self, message: Message, headers: Mapping[str, str]) -> None:
        """Send what nobody answers; what the server says to it is passed over."""
        body, sent = _written(message), {**_HEADERS, **headers}
        async with self._link.exchange("POST", sent, body) as response:
            await response.body()

    async def leave(self, headers: Mapping[str, str]) -> None:
        """End a session; a server need not allow it."""
        async with self._link.exchange("DELETE", {**_HEADERS, **headers}) as response:
            await response.body()

    async def _heard(self, response: Response, number: int, headers: Mapping[str, str]) -> bytes:
        kind = response.header("content-type").lower()
        if kind.startswith("text/event-stream") and response.status == 200:
            return await self._streamed(response, number, headers)
        if response.status < 400 and not kind.startswith("application/json"):
            raise NotMcp(f"HTTP {response.status} with content type {kind or 'none'}")
        return await response.body()

    async def _streamed(self, response: Response, number: int, headers: Mapping[str, str]) -> bytes:
        """The answer on an event stream, or on those that take it up where it broke off."""
        place = _Place()
        heard = await self._read(response, number, headers, place)
        left = RESUMES
        while heard is None and place.last and left:
            seen, left = place.last, left - 1
            await asyncio.sleep(place.wait_s)
            number_of_event = seen.encode().decode("latin-1")  # as the stream had it
            more = {**headers, "accept": "text/event-stream", "last-event-id": number_of_event}
            async with self._link.exchange("GET", more) as again:
                if again.status != 200:
                    raise HttpStatusError(again.status)
                heard = await self._read(again, number, headers, place)
            if place.last != seen:
                left = RESUMES
        if heard is None:
            raise ConnectionResetError("the event stream ended without an answer")
        return heard

    async def _read(
        self, response: Response, number: int, headers: Mapping[str, str], place: "_Place"
    ) -> bytes | None:
        """Read one stream until the answer; None when it ends, or breaks, before."""
        reader = EventReader()
        try:
            while (part := await response.part()) is not None:
                for event in reader.feed(part):
                    place.passed(event)
                    if await self._answers(event, number, headers):
                        return event.data
        except EventTooLong as error:
            raise NotMcp(str(error)) from error
        except (OSError, h11.RemoteProtocolError):
            if not place.last:
                raise
        return None

    async def _answers(self, event: Event, number: int, headers: Mapping[str, str]) -> bool:
        """Whether this is the answer; a request of the server's own is declined."""
        if event.name != "message" or not event.data:
            return False
        message = _parsed(event.data)
        if "method" not in message:
            return message.get("id") in (number, None)
        if "id" in message:
            await self.tell(_declined(message), headers)
        return False


@dataclass(slots=True)
class _Place:
    """How far a stream was read."""

    last: str = ""
    """Number of its last event; empty where the server gives none."""
    wait_s: float = RESUME_S

    def passed(self, event: Event) -> None:
        self.last = event.id or self.last
        if event.retry_ms is not None:
            self.wait_s = event.retry_ms / 1000


def _declined(request: Message) -> Message:
    """We offer a server nothing but that we are here."""
    reply: Message = {"jsonrpc": "2.0", "id": request["id"]}
    if request["method"] == "ping":
        return {**reply, "result": {}}
    return {**reply, "error": {"code": METHOD_NOT_FOUND, "message": "Method not found"}}


def _written(message: Message) -> bytes:
    """As JSON; a model may well give whole numbers of more than 64 bits, which orjson refuses."""
    try:
        return orjson.dumps(message)
    except orjson.JSONEncodeError:
        return json.dumps(message).encode()


def _parsed(body: bytes) -> Message:
    """A JSON-RPC message; raises NotMcp when it is none."""
    try:
        message: object = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise NotMcp(f"not JSON: {error}") from error
    if not isinstance(message, dict):
        raise NotMcp("no JSON-RPC message")
    known = cast(Message, message)
    if known.get("jsonrpc") != "2.0":
        raise NotMcp("no JSON-RPC message")
    return known


def _result(body: bytes, number: int, status: int) -> Message:
    """The result in an answer; raises what is there instead."""
    if status in REFUSED:
        raise HttpStatusError(status)
    try:
        message = _parsed(body)
    except NotMcp:
        if status >= 400:
            raise HttpStatusError(status) from None
        raise
    error: object = message.get("error")
    if isinstance(error, dict):
        said = cast(Message, error)
        raise RpcError(said.get("code", 0), str(said.get("message", "")), status)
    if status >= 400:
        raise HttpStatusError(status)
    result: object = message.get("result")
    if message.get("id") != number or not isinstance(result, dict):
        raise NotMcp("neither a result nor an error for this request")
    return cast(Message, result)
