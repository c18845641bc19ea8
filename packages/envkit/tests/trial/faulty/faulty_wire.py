# SPDX-License-Identifier: Apache-2.0
"""A relay between an agent and its gateway that goes wrong at one operation of MCP."""

import asyncio
from collections.abc import Awaitable, Callable

NOISE = bytes(range(128, 256)) * 8 + b"\r\n\r\n"
_CHUNK = 1 << 16
_MARKS = {
    "mcp_connect": b"POST ",
    "mcp_list": b"tools/list",
    "mcp_call": b"tools/call",
    "mcp_close": b"DELETE ",
}
_NO_METHOD = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}'


class Relay:
    """Passes on what is said, until the operation it was made for comes along."""

    def __init__(
        self, port: int, operation: str, kind: str, kill_gateway: Callable[[], Awaitable[None]]
    ) -> None:
        self._port = port
        self._operation = operation
        self._kind = kind
        self._kill_gateway = kill_gateway
        self._dying = False

    async def start(self) -> int:
        """Listen on loopback; returns the port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self._server.sockets[0].getsockname()[1]

    async def _serve(self, agent: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        gateway, onward = await asyncio.open_connection("127.0.0.1", self._port)
        back = asyncio.create_task(self._pump(gateway, answer))
        while said := await agent.read(_CHUNK):
            if self._operation == "mcp_close" and b"server/discover" in said:
                await _reply(answer, "404 Not Found", _NO_METHOD)  # an old server: closing is asked
                break
            if _MARKS[self._operation] in said:
                await self._strike(answer)
                break
            onward.write(said)
        onward.close()
        await back
        answer.close()

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while said := await source.read(_CHUNK):
                target.write(said)
        except ConnectionError:
            pass
        if not self._dying:
            target.close()

    async def _strike(self, answer: asyncio.StreamWriter) -> None:
        match self._kind:
            case "hang":
                await asyncio.Event().wait()
            case "raise":
                await _reply(answer, "500 Internal Server Error", b"oops")
            case "garbage":
                answer.write(NOISE)
                await answer.drain()
            case "die":
                self._dying = True  # the agent hears of it when everybody knows
                await self._kill_gateway()
            case _:
                raise AssertionError(self._kind)


async def _reply(answer: asyncio.StreamWriter, status: str, body: bytes) -> None:
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n"
    answer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    await answer.drain()
