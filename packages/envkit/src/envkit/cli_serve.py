# SPDX-License-Identifier: Apache-2.0
"""``envkit serve``: a world's documents over MCP, for an agent on this machine.

Contract: a world is served as a copy that ends with the server, so an agent may change it; a plain
directory is served in place and read-only. HTTP answers on 127.0.0.1 only, with a token.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

from envkit.fault import HarnessError
from envkit.sandbox.prepare import cache_directory
from envkit.servers.command import LocalRunner
from envkit.servers.config import SERVERS, GatewayConfig, server_names
from envkit.task import load_world_dir, materialize

WORLD_FILE = "world.toml"


def serve(world: Path, servers: str, *, stdio: bool, port: int) -> None:
    """Serves until interrupted.

    Raises:
        TaskError: the world cannot be read or made.
        HarnessError: there is no such directory or server, the server could do nothing there, or
            the port is taken.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a client's way to end us; clean up
    with _documents(world) as (root, apps_data, is_copy, tools):
        names = _names(servers)
        if not is_copy:
            _check_read_only(world, names)
        config = GatewayConfig(
            root=root,
            apps_data=apps_data,
            servers=names,
            tools=tools,
            token=secrets.token_urlsafe(24),
            read_only=not is_copy,
            command_root=str(root),
        )
        if stdio:
            _serve_stdio(config)
        else:
            _serve_http(config, port)


def _names(servers: str) -> tuple[str, ...]:
    try:
        names = server_names(servers)
    except ValueError as error:
        raise HarnessError(f"--servers: {error}") from error
    if not names:
        raise HarnessError(f"--servers: none is named; known servers: {', '.join(SERVERS)}")
    return names


def _check_read_only(directory: Path, names: tuple[str, ...]) -> None:
    """Raises HarnessError for a server that would be there without a single tool."""
    from envkit.servers.catalog import offered

    for name in names:
        if not offered(GatewayConfig(servers=(name,), read_only=True)):
            raise HarnessError(
                f"--servers {name}: {directory} is served in place and read-only, where it has no "
                f"tool; leave it out, or name a world (a directory with {WORLD_FILE})"
            )


@contextlib.contextmanager
def _documents(world: Path) -> Generator[tuple[Path, Path, bool, tuple[str, ...]]]:
    """(documents, data of the apps, whether they are a copy, the tools of a world that has few)."""
    if not world.is_dir():
        raise HarnessError(f"{world}: no such directory; name a world or a directory of documents")
    with tempfile.TemporaryDirectory(prefix="mcp-world-") as folder:
        copy = Path(folder)
        if (world / WORLD_FILE).is_file():
            read = load_world_dir(world)
            made = materialize(read, cache_directory())
            for part in ("filesystem", "apps_data"):
                shutil.copytree(made / part, copy / part, copy_function=_copy)
            yield copy / "filesystem", copy / "apps_data", True, read.tools
        else:
            yield world.resolve(), copy, False, ()


def _copy(source: str, target: str) -> str:
    """A file that its owner may write: those of a cached world are read-only."""
    shutil.copy2(source, target)
    os.chmod(target, 0o644)
    return target


def _serve_stdio(config: GatewayConfig) -> None:
    from envkit.servers.stdio import serve_stdio

    asyncio.run(serve_stdio(config, LocalRunner()))


def _serve_http(config: GatewayConfig, port: int) -> None:
    from envkit.servers import gateway

    try:
        listening = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise HarnessError(f"--port {port}: {error.strerror}; choose another, or 0") from error
    with listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp/"
        print(f"{address}  Authorization: Bearer {config.token}", file=sys.stderr, flush=True)
        asyncio.run(gateway.serve(config, LocalRunner(), mcp_socket=listening, data_socket=None))
