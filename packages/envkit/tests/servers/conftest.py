# SPDX-License-Identifier: Apache-2.0
"""A small world of real files, and real gateways over real sockets, forked off a warmed parent."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import time
import traceback
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from envkit.servers.command import CommandRunner, LocalRunner
from envkit.servers.config import GatewayConfig, ToolLimits
from envkit.servers.contract import Reply
from envkit.servers.desk import Desk
from envkit.servers.gateway import serve, warm

from .documents import (
    broken_pdf,
    locked_pdf,
    office_files,
    scanned_pdf,
    small_image,
    table_pdf,
    two_column_pdf,
)

TOKEN = "a-token-for-tests"
WAIT_S = 20.0


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documents of the small world, made once."""
    folder = tmp_path_factory.mktemp("world") / "filesystem"
    (folder / "reports" / "2025").mkdir(parents=True)
    (folder / "empty").mkdir()
    (folder / "notes.txt").write_text("first line\nthe margin was 31 percent\nlast line\n")
    (folder / "reports" / "2025" / "summary.md").write_text("# Summary\n")
    table_pdf(folder / "table.pdf")
    two_column_pdf(folder / "columns.pdf")
    scanned_pdf(folder / "scan.pdf")
    locked_pdf(folder / "locked.pdf")
    broken_pdf(folder / "broken.pdf")
    (folder / "nothing.pdf").write_bytes(b"")
    small_image(folder / "picture.png")
    office_files(folder)
    return folder


@pytest.fixture
def root(tmp_path: Path, made: Path) -> Path:
    """A folder of documents of every kind the servers read, for one test to change."""
    return shutil.copytree(made, tmp_path / "filesystem")


@pytest.fixture
def config(tmp_path: Path, root: Path) -> GatewayConfig:
    """A gateway over the small world, with short deadlines."""
    apps = tmp_path / "apps_data"
    apps.mkdir()
    (apps / "secret.txt").write_text("mail of others")
    return GatewayConfig(
        root=root,
        apps_data=apps,
        token=TOKEN,
        command_root=str(root),
        command_env={"PATH": os.environ["PATH"]},
        limits=ToolLimits(file_s=5, document_s=5, command_s=5),
    )


@dataclass(frozen=True)
class Served:
    """A gateway in a process of its own."""

    pid: int
    port: int
    data_path: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp/"

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Signal it and return its exit code; fails when it does not end."""
        os.kill(self.pid, number)
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.01)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        pytest.fail("the gateway did not stop")


@pytest.fixture(scope="session")
def warmed() -> None:
    """This process, ready to fork gateways."""
    warm()


type Start = Callable[..., Served]


@pytest.fixture
def start(warmed: None, config: GatewayConfig, tmp_path: Path) -> Generator[Start]:
    """Starts gateways; changes to the configuration are keyword arguments."""
    running: list[Served] = []

    def begin(runner: CommandRunner | None = None, **changes: Any) -> Served:
        mcp = socket.create_server(("127.0.0.1", 0))
        data_path = tmp_path / f"data-{len(running)}.sock"
        data = socket.socket(socket.AF_UNIX)
        data.bind(str(data_path))
        data.listen()
        pid = os.fork()
        if pid == 0:
            _child(replace(config, **changes), runner or LocalRunner(), mcp, data)
        served = Served(pid, mcp.getsockname()[1], data_path)
        mcp.close()
        data.close()
        running.append(served)
        return served

    yield begin
    for served in running:
        try:
            os.kill(served.pid, signal.SIGKILL)
            os.waitpid(served.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


def _child(
    config: GatewayConfig, runner: CommandRunner, mcp: socket.socket, data: socket.socket
) -> None:
    code = 1
    try:
        asyncio.run(serve(config, runner, mcp_socket=mcp, data_socket=data))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


@asynccontextmanager
async def connected(
    served: Served, *, token: str = TOKEN, mode: str = "auto"
) -> AsyncGenerator[Client]:
    """The protocol library's own client, over the network."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=WAIT_S) as http:
        transport = streamable_http_client(served.url, http_client=http)
        async with Client(transport, read_timeout_seconds=WAIT_S, mode=mode) as client:
            yield client


def call(desk: Desk, name: str, arguments: Any = None, call_id: str = "") -> Reply:
    """One call at a desk without a network in between."""
    return asyncio.run(desk.call(name, arguments, call_id))


@pytest.fixture
def desk(config: GatewayConfig) -> Generator[Desk]:
    """The tools over the small world, in this process."""
    desk = Desk(config, LocalRunner())
    yield desk
    desk.close()


async def until(holds: Callable[[], object]) -> None:
    """Wait for what another process does; fails when it never does."""
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


def children_of(pid: int) -> list[int]:
    """The living children of a process."""
    try:
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]
    except FileNotFoundError:
        return []


def is_running(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    return Path(f"/proc/{pid}/exe").exists()


def text_of(result: Any) -> str:
    """All text parts of a tool result."""
    return "\n".join(part.text for part in result.content if part.type == "text")
