# SPDX-License-Identifier: Apache-2.0
"""One process, one event loop, every server of a world over streamable HTTP.

`build_app` is for the agent (/mcp/, /health, /apps); `build_data_app` moves files in and out
(/data/populate, /data/snapshot) and answers on a host-side Unix socket only. `serve` runs both on
sockets that are already listening, so it works in a forked child that has no network of its own.
`warm` does all first-time work and leaves one thread: call it, then `gc.freeze()`, then fork.
"""

import asyncio
import contextlib
import functools
import logging
import os
import signal
import socket
import tempfile
import threading
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from envkit.servers.command import CommandRunner, LocalRunner
from envkit.servers.config import GatewayConfig
from envkit.servers.data import data_routes
from envkit.servers.desk import Desk, OnFault
from envkit.servers.guard import Guard
from envkit.servers.protocol import mcp_server
from envkit.servers.remembered import Remembered
from envkit.servers.warmup import exchange

STOP_S = 2
"""How long open requests may take once the gateway was told to stop."""
BODY_BYTES = 8 << 20
MCP_PATHS = ("/mcp", "/mcp/")


def build_app(
    config: GatewayConfig, runner: CommandRunner, on_fault: OnFault | None = None
) -> ASGIApp:
    """The agent's application: /mcp/, /health, /apps, behind token, Host and Origin checks."""
    desk = Desk(config, runner, on_fault)
    manager = StreamableHTTPSessionManager(mcp_server(desk), max_request_body_size=BODY_BYTES)
    mcp = Remembered(StreamableHTTPASGIApp(manager), of=tuple(desk.tools))

    async def health(_request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"})

    async def apps(_request: Request) -> JSONResponse:
        by_server = {
            server: sorted(name for name, tool in desk.tools.items() if tool.server == server)
            for server in config.servers
        }
        return JSONResponse({"servers": by_server, "surface": config.surface})

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        async with manager.run():
            yield
        desk.close()

    routes = [Route("/health", health), Route("/apps", apps)]
    return Guard(_Door(mcp, Starlette(routes=routes, lifespan=lifespan)), token=config.token)


class _Door:
    """Tool calls straight to the protocol, everything else to the routes."""

    def __init__(self, mcp: ASGIApp, routes: ASGIApp) -> None:
        self._mcp = mcp
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_mcp = scope["type"] == "http" and scope["path"] in MCP_PATHS
        await (self._mcp if is_mcp else self._routes)(scope, receive, send)


def build_data_app(config: GatewayConfig) -> ASGIApp:
    """The host's application: /data/populate and /data/snapshot. Serve it on a Unix socket."""
    return Guard(Starlette(routes=data_routes(config)), token=None)


class _Server(uvicorn.Server):
    """Leaves signals to `serve`, and sleeps until it is told to stop.

    The original wakes ten times a second; hundreds of idle gateways would keep a core busy.
    """

    def __init__(self, app: ASGIApp) -> None:
        _say_errors_only()
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                proxy_headers=False,
                lifespan="on",
                ws="none",
                server_header=False,
                date_header=False,
                timeout_graceful_shutdown=STOP_S,
            )
        )
        self._stopping = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def main_loop(self) -> None:
        await self._stopping.wait()

    def stop(self) -> None:
        self.should_exit = True
        self._stopping.set()


@functools.cache
def _say_errors_only() -> None:
    """Once a process, and before a fork: each change of a level walks every logger there is."""
    for name in ("uvicorn.error", "uvicorn.asgi"):
        logging.getLogger(name).setLevel(logging.ERROR)


async def serve(
    config: GatewayConfig,
    runner: CommandRunner,
    *,
    mcp_socket: socket.socket,
    data_socket: socket.socket | None,
    on_fault: OnFault | None = None,
) -> None:
    """Serve until cancelled or told by SIGTERM; the sockets must already be listening.

    Raises ValueError when the data socket is not a Unix socket.
    """
    if data_socket is not None and data_socket.family != socket.AF_UNIX:
        raise ValueError("data_socket must be a Unix socket: /data/* answers only to the host")
    if mcp_socket.family != socket.AF_UNIX:
        # Inherited by accepted sockets; without it each reply waits 40 ms for a delayed ACK.
        mcp_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    served = [(_Server(build_app(config, runner, on_fault)), mcp_socket)]
    if data_socket is not None:
        served.append((_Server(build_data_app(config)), data_socket))
    await _until_told([server for server, _ in served], [sock for _, sock in served])


async def _until_told(servers: list[_Server], sockets: list[socket.socket]) -> None:
    """Run the servers until one ends, SIGTERM comes or the caller is cancelled; then stop all."""

    def stop() -> None:
        for server in servers:
            server.stop()

    loop = asyncio.get_running_loop()
    if threading.current_thread() is threading.main_thread():
        loop.add_signal_handler(signal.SIGTERM, stop)
    pairs = zip(servers, sockets, strict=True)
    tasks = [asyncio.create_task(server.serve(sockets=[sock])) for server, sock in pairs]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop()
        await asyncio.wait(tasks)
        loop.remove_signal_handler(signal.SIGTERM)
    await asyncio.gather(*tasks)


def warm() -> None:
    """Import everything and serve one full exchange to itself, leaving a single thread.

    Raises RuntimeError when more than one thread is left: the process must not be forked then.
    """
    with tempfile.TemporaryDirectory(prefix="envkit-warm-") as folder:
        asyncio.run(_warm(Path(folder)))
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise RuntimeError(f"{threads} threads are left after warming up; a fork would be unsafe")


async def _warm(folder: Path) -> None:
    config = GatewayConfig(root=folder, apps_data=folder, token="warm", command_root=str(folder))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = asyncio.create_task(
            serve(config, LocalRunner(), mcp_socket=listening, data_socket=None)
        )
        try:
            await exchange(listening.getsockname()[1], "warm", folder)
        finally:
            serving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await serving
