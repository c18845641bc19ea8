# SPDX-License-Identifier: Apache-2.0
"""Start the gateway of one trial: two listening sockets, a token, and a first answer.

The sockets are made here, on the host, and inherited by the gateway in its box, which has no
network of its own: the agent's on loopback, the one for ``/data/*`` as a Unix socket in the
stage, where no box can reach it.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import orjson

from envkit.deadline import deadline
from envkit.fault import ServerGarbage, ServerStartFailed
from envkit.sandbox.spec import GatewayAddress

Ask = Callable[[list[int]], Awaitable[object]]
"""Asks the fork server to start it on descriptors, the last of which holds its configuration."""

_BACKLOG: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """A gateway that has answered."""

    address: GatewayAddress
    port: int
    data_socket: Path
    """Of ``/data/populate`` and ``/data/snapshot``, for the host alone."""

    async def check(self, seconds: float) -> None:
        """See that it still answers.

        Raises:
            ServerError: it does not, or says that it is not well.
            DeadlineExceeded: it did not answer in ``seconds``.
        """
        async with deadline("mcp_connect", seconds):
            status = await _health(self.port)
        if b" 200 " not in status:
            raise ServerGarbage(f"the gateway answered {status[:60]!r} to /health")

    def forget(self) -> None:
        """Remove the socket's file."""
        self.data_socket.unlink(missing_ok=True)


async def start_gateway(
    ask: Ask,
    *,
    servers: tuple[str, ...],
    stage: Path,
    log: Path,
    seconds: float,
    tools: tuple[str, ...] = (),
) -> Gateway:
    """Start it and wait until it answers; ``log`` gets its complaints, no ``tools`` are all.

    Raises:
        ServerStartFailed: it answered something else than that it is well.
        DeadlineExceeded: it did not answer in ``seconds``.
    """
    token = secrets.token_urlsafe(24)
    path = stage / f"{secrets.token_hex(8)}.sock"
    wanted = {"servers": list(servers), "tools": list(tools), "token": token}
    with (
        socket.create_server(("127.0.0.1", 0)) as mcp,
        _listening(path) as data,
        log.open("ab") as complaints,
        _to_be_read(wanted) as config,
    ):
        port = mcp.getsockname()[1]
        await ask([mcp.fileno(), data.fileno(), complaints.fileno(), config.fileno()])
    url = f"http://127.0.0.1:{port}/mcp/"
    await _answers(port, seconds)
    return Gateway(address=GatewayAddress(url=url, token=token), port=port, data_socket=path)


def _to_be_read(config: dict[str, Any]) -> IO[bytes]:
    """A configuration that only the gateway reads: whoever forks it must not keep its token."""
    read_end, write_end = os.pipe()
    with os.fdopen(write_end, "wb") as stream:
        stream.write(orjson.dumps(config))
    return os.fdopen(read_end, "rb")


def _listening(path: Path) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(path))
    sock.listen(_BACKLOG)
    return sock


async def _answers(port: int, seconds: float) -> None:
    """The socket listens long before the gateway behind it answers."""
    async with deadline("gateway_start", seconds):
        status = await _health(port)
    if b" 200 " not in status:
        raise ServerStartFailed(f"the gateway answered {status[:60]!r} to /health")


async def _health(port: int) -> bytes:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        await writer.drain()
        status = await reader.readline()
        writer.close()
    except OSError as error:
        raise ServerStartFailed(f"the gateway closed the connection: {error.strerror}") from error
    return status
