# SPDX-License-Identifier: Apache-2.0
"""What the SDK and the HTTP below it raise, in envkit's terms.

The SDK folds every HTTP status into two JSON-RPC codes, so the status is kept beside it.
"""

from collections.abc import Iterator
from typing import cast

import httpx2
from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS, METHOD_NOT_FOUND

from envkit.fault import ServerDisconnected, ServerError, ServerGarbage, ServerStartFailed

_REFUSED = (401, 403)


class HttpTrace:
    """The status of the latest answer, which the SDK does not hand on."""

    def __init__(self) -> None:
        self.status = 0

    async def saw(self, response: httpx2.Response) -> None:
        """An httpx2 response hook."""
        self.status = response.status_code

    @property
    def failed(self) -> bool:
        """Whether the latest answer was an HTTP error."""
        return self.status >= 400


def is_refusal(error: MCPError, trace: HttpTrace) -> bool:
    """Whether a server in order refused one call: an unknown tool, wrong arguments."""
    return error.code in (INVALID_PARAMS, METHOD_NOT_FOUND) and not trace.failed


def server_fault(
    error: BaseException | None, trace: HttpTrace, url: str, *, connecting: bool = False
) -> ServerError:
    """The fault for whatever ended a request or the client as a whole."""
    causes = [] if error is None else list(_leaves(error))
    lost = next((cause for cause in causes if _is_lost(cause)), None)
    if trace.status in _REFUSED:
        fault = ServerStartFailed if connecting else ServerGarbage
        return fault(f"{url} answered HTTP {trace.status}: the bearer token is wrong")
    if lost is not None or not causes:
        fault = ServerStartFailed if connecting else ServerDisconnected
        return fault(f"{url} {'does not answer' if connecting else 'is gone'}{_detail(lost)}")
    status = f"HTTP {trace.status}" if trace.failed else "what is not MCP"
    return ServerGarbage(f"{url} answered {status}{_detail(causes[0])}")


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        for member in group.exceptions:
            yield from _leaves(member)
    else:
        yield error


def _is_lost(error: BaseException) -> bool:
    if isinstance(error, MCPError):
        return error.code == CONNECTION_CLOSED
    garbage = isinstance(error, httpx2.ProtocolError) and "disconnected" not in str(error)
    return isinstance(error, (httpx2.TransportError, OSError)) and not garbage


def _detail(error: BaseException | None) -> str:
    if error is None:
        return ""
    text = str(error).strip().partition("\n")[0][:300]
    return f": {type(error).__name__}: {text}" if text else f": {type(error).__name__}"
