# SPDX-License-Identifier: Apache-2.0
"""A real MCP server in a process of its own, to be killed: prints its port and serves.

Run by the tests as ``python real_server.py TOKEN``; every tool is a hazard of a real one. With
``--life S`` the token is refused so many seconds after its first use. ``--old`` knows no protocol
without a handshake, ``--stateful`` keeps sessions and ``--events`` answers on event streams.
"""

import argparse
import asyncio
import math
import os
import socket
import sys
import time
from typing import Any

import uvicorn
from mcp import MCPError
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel
from starlette.types import ASGIApp, Receive, Scope, Send

server = MCPServer("hazards")


@server.tool()
def echo(text: str) -> str:
    """Say it back."""
    return text


@server.tool()
def count(number: int) -> str:
    """Say a number back."""
    return str(number)


@server.tool()
def refuse(why: str) -> str:
    """Fail as a tool should."""
    raise ToolError(f"not_found: {why}")


@server.tool()
def refuse_by_right(why: str) -> CallToolResult:
    """Fail by what was asked, and say so as a gateway of envkit does."""
    envelope = {"ok": False, "code": "not_found", "owner": "model"}
    content = [TextContent(type="text", text=why)]
    return CallToolResult(content=content, structured_content=envelope, is_error=True)


@server.tool()
def crash() -> str:
    """Fail as a tool should not."""
    raise ZeroDivisionError


@server.tool()
def nothing() -> None:
    """Answer nothing at all."""


@server.tool()
def envelope(ok: bool) -> dict[str, Any]:
    """Answer in an envelope."""
    return {"ok": ok, "code": "done" if ok else "no_such_file", "did": "looked"}


@server.tool()
def call_id(context: Context) -> str:
    """The call id that came with the call."""
    meta = context.request_context.meta or {}
    return str(dict(meta).get("envkit/call_id"))


@server.tool()
async def forever() -> str:
    """Never answer."""
    try:
        await asyncio.get_running_loop().create_future()
    except asyncio.CancelledError:
        given_up.append("forever")
        raise
    return "unreachable"


given_up: list[str] = []


@server.tool()
async def calls_given_up() -> int:
    """How many callers were seen to leave."""
    return len(given_up)


@server.tool()
async def chatty(context: Context) -> str:
    """Tell of progress, ask the client back where the protocol lets us, then answer."""
    await context.report_progress(1, 2, "half way")
    answered = "nobody asked"
    if context.request_context.protocol_version < "2026" and "--stateful" in sys.argv:
        try:
            await context.elicit("Are you sure?", Sure)
        except MCPError as error:
            answered = f"declined: {error.error.code}"
    return answered


class Sure(BaseModel):
    """What the tool asks for."""

    sure: bool


@server.tool()
def die() -> str:
    """Take the whole server along."""
    os._exit(1)


@server.tool()
def leave() -> str:
    """What a careless tool does to its server."""
    sys.exit(3)


@server.tool()
def big(mib: int) -> str:
    """A long answer."""
    return "x" * (mib << 20)


def guarded(app: ASGIApp, token: str, life_s: float, *, old: bool) -> ASGIApp:
    """Only with the bearer token, as long as it is fresh; as if the newer protocol were unknown."""

    expected = (b"authorization", f"Bearer {token}".encode())
    used: list[float] = []

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await app(scope, receive, send)
        used.append(time.monotonic())
        stale = used[-1] - used[0] > life_s
        if stale or expected not in scope["headers"]:
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"who are you?"})
            return
        if old and (b"mcp-protocol-version", b"2026-07-28") in scope["headers"]:
            await send({"type": "http.response.start", "status": 400, "headers": []})
            await send({"type": "http.response.body", "body": b"Unsupported protocol version"})
            return
        await app(scope, receive, send)

    return guard


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("token")
    parser.add_argument("--life", type=float, default=math.inf)
    for flag in ("--old", "--stateful", "--events"):
        parser.add_argument(flag, action="store_true")
    asked = parser.parse_args()
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    print(listener.getsockname()[1], flush=True)
    http = server.streamable_http_app(
        json_response=not asked.events, stateless_http=not asked.stateful
    )
    app = guarded(http, asked.token, asked.life, old=asked.old)
    config = uvicorn.Config(app, log_level="critical", access_log=False)
    asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


if __name__ == "__main__":
    main()
