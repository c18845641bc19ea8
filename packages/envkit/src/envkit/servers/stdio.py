# SPDX-License-Identifier: Apache-2.0
"""The same desk over standard input and output, one JSON-RPC message a line.

Without a thread, so that calls can still be forked off. While serving, descriptor 0 is the null
device and descriptor 1 is standard error: nothing that a library prints can break the stream.
"""

import os
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

from envkit.servers.command import CommandRunner
from envkit.servers.config import GatewayConfig
from envkit.servers.desk import Desk
from envkit.servers.fds import read_some, write_all
from envkit.servers.protocol import mcp_server

LINE_BYTES = 8 << 20
"""A longer message ends the connection."""


async def serve_stdio(config: GatewayConfig, runner: CommandRunner) -> None:
    """Serve one client until it closes our standard input."""
    desk = Desk(config, runner)
    server = mcp_server(desk)
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        with _own_streams() as (in_fd, out_fd):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_read, in_fd, to_server)
                tasks.start_soon(_write, out_fd, from_server)
                await server.run(from_client, to_client, server.create_initialization_options())
                tasks.cancel_scope.cancel()
    finally:
        desk.close()


@contextmanager
def _own_streams() -> Generator[tuple[int, int]]:
    """Private copies of standard input and output, with harmless ones in their place."""
    in_fd, out_fd, null = os.dup(0), os.dup(1), os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    blocking = [(fd, os.get_blocking(fd)) for fd in (in_fd, out_fd)]
    try:
        for fd, _ in blocking:
            os.set_blocking(fd, False)
        yield in_fd, out_fd
    finally:
        for fd, was in blocking:
            os.set_blocking(fd, was)
        os.dup2(in_fd, 0)
        os.dup2(out_fd, 1)
        os.close(in_fd)
        os.close(out_fd)


async def _read(fd: int, to_server: Any) -> None:
    async with to_server:
        async for line in _lines(fd):
            try:
                message = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
            except ValidationError as error:
                await to_server.send(error)
                continue
            await to_server.send(message)


async def _lines(fd: int) -> AsyncGenerator[bytes]:
    held = b""
    while (data := await read_some(fd)) and len(held) <= LINE_BYTES:
        *lines, held = (held + data).split(b"\n")
        for line in lines:
            if line.strip():
                yield line


async def _write(fd: int, from_server: Any) -> None:
    async for message in from_server:
        text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
        await write_all(fd, text.encode() + b"\n")
