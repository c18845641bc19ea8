# SPDX-License-Identifier: Apache-2.0
"""What a connection and a server come to, in envkit's terms.

Contract: a connection that ended is `ServerDisconnected`, a server that refuses a token is
`TokenExpired`, one that fails inside is `ServerError`, and what is no answer is `ServerGarbage`;
while connecting, the first two are `ServerStartFailed`.
"""

import h11
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND

from envkit.agent.mcp_wire import REFUSED, HttpStatusError, NotMcp, RpcError
from envkit.fault import (
    ServerDisconnected,
    ServerError,
    ServerGarbage,
    ServerStartFailed,
    TokenExpired,
)

FAILURES = (OSError, h11.RemoteProtocolError, HttpStatusError, RpcError, NotMcp)
"""What a request may raise."""
_CUT = "peer closed"
"""How h11 words a connection that ended in the middle; its other protocol errors are garbage."""


def is_refusal(error: RpcError) -> bool:
    """Whether a server in order refused one call: an unknown tool, wrong arguments."""
    return error.code in (INVALID_PARAMS, METHOD_NOT_FOUND)


def server_fault(error: Exception, url: str, *, connecting: bool = False) -> ServerError:
    """The fault for what ended a request."""
    if isinstance(error, HttpStatusError) and error.status in REFUSED:
        refused = ServerStartFailed if connecting else TokenExpired
        why = "the bearer token is wrong" if connecting else "it accepted this token before"
        return refused(f"{url} answered HTTP {error.status}: {why}")
    if _is_lost(error):
        lost = ServerStartFailed if connecting else ServerDisconnected
        return lost(f"{url} {'does not answer' if connecting else 'is gone'}{_detail(error)}")
    if isinstance(error, HttpStatusError):
        return ServerGarbage(f"{url} answered HTTP {error.status}")
    if isinstance(error, RpcError) and error.code == INTERNAL_ERROR:
        return ServerError(f"{url} failed inside{_detail(error)}")
    return ServerGarbage(f"{url} answered what is not MCP{_detail(error)}")


def _is_lost(error: Exception) -> bool:
    if isinstance(error, RpcError):
        return error.code == CONNECTION_CLOSED and error.status < 400
    if isinstance(error, h11.RemoteProtocolError):
        return _CUT in str(error)
    return isinstance(error, OSError)


def _detail(error: Exception) -> str:
    text = str(error).strip().partition("\n")[0][:300]
    name = type(error).__name__
    return f": {name}: {text}" if text else f": {name}"
