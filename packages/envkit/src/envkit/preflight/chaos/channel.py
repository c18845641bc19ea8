# SPDX-License-Identifier: Apache-2.0
"""What the fork server would answer, were it short of processes or out of its mind."""

from __future__ import annotations

import asyncio
import socket
from typing import Any, Final

from envkit.preflight.chaos.wire import NOISE
from envkit.sandbox.channel import Channel, RequestFailed


class Bent:
    """A channel whose answer to ``close`` lacks what it should say, and that forks no gateway."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def ask(self, op: str, fds: Any = (), **arguments: Any) -> dict[str, Any]:
        if op == "gateway":
            raise RequestFailed("BlockingIOError", "[Errno 11] Resource temporarily unavailable")
        answer = await self._channel.ask(op, fds, **arguments)
        return {"ok": True, "usage": None} if op == "close" else answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)


async def speak_noise(fd: int) -> None:
    """Serve noise on a listening socket, as long as the loop runs."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(NOISE + b"\n")
        writer.close()

    _noisy.append(await asyncio.start_server(answer, sock=socket.socket(fileno=fd)))


_noisy: Final[list[asyncio.Server]] = []
