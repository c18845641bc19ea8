# SPDX-License-Identifier: Apache-2.0
"""A real gateway on loopback, and a way to it that can be cut at any moment."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from envkit.agent.mcp_client import Endpoint
from envkit.servers.command import LocalRunner
from envkit.servers.config import GatewayConfig
from envkit.servers.gateway import serve

TOKEN = "a-token-for-tests"
EXEC = "code_execution_server_code_exec"


@asynccontextmanager
async def gateway(root: Path) -> AsyncGenerator[int]:
    """Its port; commands run on this machine, in ``root``."""
    os.makedirs(root, exist_ok=True)
    config = GatewayConfig(root=root, apps_data=root, token=TOKEN, command_root=str(root))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        work = serve(config, LocalRunner(), mcp_socket=listening, data_socket=None)
        serving = asyncio.create_task(work)
        try:
            yield listening.getsockname()[1]
        finally:
            serving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await serving


@dataclass
class Way:
    """Carries bytes to a server and back, but for the answers that it loses."""

    port: int
    loses: int = 0
    """So many answers to requests that hold ``marked``."""
    marked: bytes = b"lines.txt"
    shut: bool = False
    """Nobody gets through any more."""
    lost: int = 0
    _open: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])

    def cut(self) -> None:
        """Cut what is under way."""
        for writer in self._open:
            writer.transport.abort()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.shut:
            writer.close()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self.port)
        losing = asyncio.Event()
        self._open |= {back, writer}
        await asyncio.wait(
            [
                asyncio.create_task(self._forth(reader, back, losing)),
                asyncio.create_task(self._back(there, writer, losing)),
            ],
            return_when=asyncio.FIRST_COMPLETED,
        )
        back.close()
        writer.close()

    async def _forth(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, losing: asyncio.Event
    ) -> None:
        while data := await reader.read(1 << 16):
            if self.loses and self.marked in data:
                self.loses -= 1
                losing.set()
            writer.write(data)

    async def _back(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, losing: asyncio.Event
    ) -> None:
        while data := await reader.read(1 << 16):
            if losing.is_set():
                self.lost += 1
                return
            writer.write(data)


@asynccontextmanager
async def way_to(port: int) -> AsyncGenerator[tuple[Way, Endpoint]]:
    """The way, and the endpoint at its beginning."""
    way = Way(port)
    server = await asyncio.start_server(way.carry, "127.0.0.1", 0)
    try:
        at = server.sockets[0].getsockname()[1]
        yield way, Endpoint(url=f"http://127.0.0.1:{at}/mcp/", token=TOKEN)
    finally:
        server.close()
