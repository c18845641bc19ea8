# SPDX-License-Identifier: Apache-2.0
"""A relay between an agent and its gateway that strikes when one operation of MCP comes along.

Contract: before the strike it passes on every byte as it came. What it answers itself in place of
the gateway, it answers from the strike on; whatever else strikes, strikes once.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Final

NOISE: Final = bytes(range(128, 256)) * 8 + b"\r\n\r\n"
"""Neither text nor HTTP nor an archive."""

SLOW_S: Final = 1.0
"""Twenty times what a call takes, and far below any budget."""

_CHUNK: Final = 1 << 16
_MARKS: Final = {"connect": b"POST ", "list": b"tools/list", "call": b"tools/call"}
_STATUS: Final = {"http-500": "500 Internal Server Error", "rate-limited": "429 Too Many Requests"}
_ANSWERS: Final = {
    "silent": "no request is passed on any more",
    "reset": "every connection is reset",
    "garbage": "noise is every answer",
    **{kind: f"HTTP {status} is every answer" for kind, status in _STATUS.items()},
}
"""What comes in place of the gateway's answers, from the strike on."""
_ABORT: Final = struct.pack("ii", 1, 0)
"""SO_LINGER of a socket whose end is a reset."""

Hit = Callable[[], Awaitable[None]]
"""Does what the relay itself cannot: signals, limits, clocks."""


class Relay:
    """Passes on what is said, until the operation it was made for comes along."""

    def __init__(
        self, port: int, phase: str, kind: str, hit: Hit, log: Callable[[str], None]
    ) -> None:
        self._port = port
        self._mark = _MARKS[phase]
        self._kind = kind
        self._hit = hit
        self._log = log
        self._struck = False
        self._mute = False

    async def start(self) -> int:
        """Listen on loopback for as long as the loop runs; returns the port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self._server.sockets[0].getsockname()[1]

    async def _serve(self, agent: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        try:
            gateway, onward = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            answer.close()
            return
        back = asyncio.create_task(self._pump(gateway, answer))
        with contextlib.suppress(ConnectionError):
            while said := await agent.read(_CHUNK):
                if not await self._passes(said, answer):
                    break
                onward.write(said)
        onward.close()
        await back
        answer.close()

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while said := await source.read(_CHUNK):
                target.write(said)
        if not self._mute:
            target.close()

    async def _passes(self, said: bytes, answer: asyncio.StreamWriter) -> bool:
        """Whether what was said goes on to the gateway."""
        if not self._struck and self._mark not in said:
            return True
        first, self._struck = not self._struck, True
        if self._kind in _ANSWERS:
            await self._answer(answer)
            if first:
                self._log(_ANSWERS[self._kind])
            if self._kind == "silent":
                self._mute = True
                await asyncio.Event().wait()
            return False
        if first:
            await self._strike()
        return True

    async def _strike(self) -> None:
        if self._kind != "slow":
            await self._hit()
            return
        self._log(f"the request is passed on {SLOW_S:g} s later")
        await asyncio.sleep(SLOW_S)

    async def _answer(self, answer: asyncio.StreamWriter) -> None:
        match self._kind:
            case "reset":
                sock: socket.socket = answer.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
                answer.transport.abort()
            case "garbage":
                answer.write(NOISE)
                await answer.drain()
            case "http-500" | "rate-limited":
                await _reply(answer, _STATUS[self._kind])
            case _:
                pass


async def _reply(answer: asyncio.StreamWriter, status: str) -> None:
    head = f"HTTP/1.1 {status}\r\ncontent-type: text/plain\r\nretry-after: 30\r\n"
    answer.write(f"{head}connection: close\r\ncontent-length: 4\r\n\r\noops".encode())
    await answer.drain()
