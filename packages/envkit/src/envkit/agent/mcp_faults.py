# SPDX-License-Identifier: Apache-2.0
"""What the SDK and the HTTP below it raise, in envkit's terms.

The SDK folds every HTTP status into two JSON-RPC codes and every broken connection into one, so
what happened on the wire is kept beside it, request by request.
"""

from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import cast, override

import httpx2
from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND

from envkit.fault import (
    ServerDisconnected,
    ServerError,
    ServerGarbage,
    ServerStartFailed,
    TokenExpired,
)

_REFUSED = (401, 403)
_GONE = ("disconnected", "peer closed")
"""How h11 words a connection that ended in the middle; its other protocol errors are garbage."""


@dataclass(slots=True)
class HttpTrace:
    """What the HTTP of one request came to."""

    status: int = 0
    error: BaseException | None = None

    @property
    def failed(self) -> bool:
        """Whether the answer was an HTTP error."""
        return self.status >= 400


TRACE: ContextVar[HttpTrace] = ContextVar("TRACE")
"""The trace of the request being sent. The SDK posts a message in the context of its sender."""


class TracedTransport(httpx2.AsyncHTTPTransport):
    """Writes down what each request came to."""

    @override
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        trace = TRACE.get(HttpTrace())
        try:
            response = await super().handle_async_request(request)
        except httpx2.TransportError as error:
            trace.error = error
            raise
        trace.status = response.status_code
        return response


def is_refusal(error: MCPError, trace: HttpTrace) -> bool:
    """Whether a server in order refused one call: an unknown tool, wrong arguments."""
    return error.code in (INVALID_PARAMS, METHOD_NOT_FOUND) and not trace.failed


def server_fault(
    error: BaseException | None, trace: HttpTrace, url: str, *, connecting: bool = False
) -> ServerError:
    """The fault for whatever ended a request, or the client as a whole."""
    causes = [each for each in (trace.error, *_leaves(error)) if each is not None]
    if trace.status in _REFUSED:
        refused = ServerStartFailed if connecting else TokenExpired
        why = "the bearer token is wrong" if connecting else "it accepted this token before"
        return refused(f"{url} answered HTTP {trace.status}: {why}")
    if not causes or _is_lost(causes[0]):
        lost = ServerStartFailed if connecting else ServerDisconnected
        return lost(f"{url} {'does not answer' if connecting else 'is gone'}{_detail(causes)}")
    if trace.failed:
        return ServerGarbage(f"{url} answered HTTP {trace.status}")
    if isinstance(causes[0], MCPError) and causes[0].code == INTERNAL_ERROR:
        return ServerError(f"{url} failed inside{_detail(causes)}")
    return ServerGarbage(f"{url} answered what is not MCP{_detail(causes)}")


def _leaves(error: BaseException | None) -> Iterator[BaseException | None]:
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        for member in group.exceptions:
            yield from _leaves(member)
    else:
        yield error


def _is_lost(error: BaseException) -> bool:
    if isinstance(error, MCPError):
        return error.code == CONNECTION_CLOSED
    if isinstance(error, httpx2.ProtocolError):
        return any(words in str(error) for words in _GONE)
    return isinstance(error, (httpx2.TransportError, OSError))


def _detail(causes: list[BaseException]) -> str:
    if not causes:
        return ""
    text = str(causes[0]).strip().partition("\n")[0][:300]
    name = type(causes[0]).__name__
    return f": {name}: {text}" if text else f": {name}"
