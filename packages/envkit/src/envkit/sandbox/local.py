# SPDX-License-Identifier: Apache-2.0
"""``local``: a Harbor environment over bubblewrap on this machine.

Contract: the box sees a private root with a throw-away overlay, ``/filesystem`` with the task's
world, true ``/logs``, ``/tests`` and ``/solution``, and nothing else of the host; no network
unless the task asks for one; no capabilities; the task's limits. The agent's environment has a
gateway in a box of its own when the task declares MCP servers. Files are carried by trusted code
that enters the box, never by what the box holds. Errors are envkit's, classified.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path, PurePath, PurePosixPath
from typing import IO, Any, Final, Never, override

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import (
    EnvironmentCapabilities,
    EnvironmentResourceCapabilities,
)

from envkit.deadline import DeadlineExceeded, deadline
from envkit.fault import (
    DiskFull,
    EndlessCommand,
    KilledOwnBox,
    OutOfMemory,
    ProcessLimit,
    SandboxDied,
    SandboxStartFailed,
    ServerDisconnected,
    ServerStartFailed,
    TransferFailed,
)
from envkit.sandbox import archive, command
from envkit.sandbox.channel import RequestFailed
from envkit.sandbox.ledger import ledger
from envkit.sandbox.limits import Limits, Usage
from envkit.sandbox.lodging import AGENT_PATH
from envkit.sandbox.prepare import Prepared
from envkit.sandbox.session import Session, session
from envkit.sandbox.spec import BoxSpec, GatewayAddress

_MAX_OUTPUT: Final = 4 << 20
"""Bytes of output kept of one command of the harness."""

_ENV: Final = {"PATH": AGENT_PATH, "HOME": "/root", "LANG": "C.UTF-8"}


class LocalEnvironment(BaseEnvironment):
    """One box, and with MCP servers a gateway beside it."""

    _session: Session | None = None
    _name: str = ""
    _endpoint: GatewayAddress | None = None
    _data_socket: Path | None = None
    _limits: Limits = Limits()
    _own_doing: KilledOwnBox | None = None

    @staticmethod
    @override
    def type() -> str:
        return "envkit-local"

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True)

    @classmethod
    @override
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        return EnvironmentResourceCapabilities(
            cpu_limit=True, memory_limit=True, fractional_cpus=True
        )

    @override
    def _validate_definition(self) -> None:
        """A task needs no Dockerfile here: its world declares what a box holds."""

    @override
    async def start(self, force_build: bool) -> None:
        self._session = await session()
        prepared = await asyncio.to_thread(self._session.prepare, self.environment_dir.parent)
        self._name = self._session.box_name(self._role())
        self._session.handlers[self._name] = self._ended
        spec = self._spec(prepared)
        self._limits = spec.limits
        await self._ask("open", spec=spec.to_dict())
        if not self._enable_environment_dir_upload:
            await self.upload_dir(self.environment_dir, "/tests")
        if self._role() == "agent" and self.task_env_config.mcp_servers:
            await self._start_gateway(prepared)

    @override
    async def stop(self, delete: bool) -> None:
        if self._session is None or not self._name:
            return
        name, self._name = self._name, ""
        self._session.handlers.pop(name, None)
        if self._data_socket is not None:
            self._data_socket.unlink(missing_ok=True)
        try:
            closed = await self._session.channel.ask("close", box=name)
        except RequestFailed as error:
            if error.code != "KeyError":  # a box that never opened has nothing to close
                raise SandboxDied(error.message) from error
            return
        self._account(closed)

    @override
    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
        **_: Any,
    ) -> ExecResult:
        done = await self._run(["/bin/bash", "-c", command], cwd, env, timeout_sec)
        if done.timed_out and timeout_sec is not None:
            raise DeadlineExceeded("exec", timeout_sec)
        return ExecResult(
            stdout=done.stdout.joined().decode(errors="replace"),
            stderr=done.stderr.joined().decode(errors="replace"),
            return_code=done.status,
        )

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        target = PurePosixPath(target_path)
        await self._send(
            str(target.parent),
            lambda stream: archive.write_tree(Path(source_path), stream, target.name),
        )

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        await self._send(target_dir, lambda stream: archive.write_tree(Path(source_dir), stream))

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        target = Path(target_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetched-") as holder:
            await self._fetch(source_path, Path(holder))
            (Path(holder) / PurePosixPath(source_path).name).replace(target)

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        await self._fetch(source_dir, Path(target_dir))

    @override
    async def is_dir(self, path: str, user: str | int | None = None) -> bool:
        return await self._transfer("kind", path) == archive.IS_DIRECTORY

    @override
    async def is_file(self, path: str, user: str | int | None = None) -> bool:
        return await self._transfer("kind", path) == archive.IS_FILE

    @override
    async def empty_dirs(self, dirs: Any, *, chmod: bool = True) -> ExecResult | None:
        for path in dirs:
            await self._transfer("empty", _text(path))
        return ExecResult(stdout="", stderr="", return_code=0)

    async def settle(self) -> None:
        """Kill what the agent left running, so that what is collected stands still."""
        await self._ask("sweep")

    async def tool_endpoint(self) -> GatewayAddress:
        """Where this trial's gateway answers.

        Raises:
            ServerStartFailed: the task declares no MCP servers, so there is none.
        """
        if self._endpoint is None:
            raise ServerStartFailed("this environment has no gateway; the task declares no servers")
        return self._endpoint

    @property
    def data_socket(self) -> Path | None:
        """Host-side Unix socket of ``/data/populate`` and ``/data/snapshot``."""
        return self._data_socket

    def _role(self) -> str:
        return "agent" if self.session_id.endswith("__env") else "verifier"

    def _spec(self, prepared: Prepared) -> BoxSpec:
        config = self.task_env_config
        default = Limits()
        limits = Limits(
            memory_mib=self._effective_memory_mb or default.memory_mib,
            cpus=float(self._effective_cpus or default.cpus),
            storage_mib=self._effective_storage_mb or default.storage_mib,
        )
        return BoxSpec(
            name=self._name,
            root=prepared.root,
            world=prepared.world if self._role() == "agent" else None,
            limits=limits,
            network=self._network_is_public,
            start_s=min(ledger().budgets.start_s, config.build_timeout_sec),
        )

    async def _start_gateway(self, prepared: Prepared) -> None:
        ledger().enter("gateway")
        token = secrets.token_urlsafe(24)
        config = {"servers": list(prepared.servers), "token": token}
        stage = (await session()).stage
        self._data_socket = stage / f"{self.session_id[:40]}-{secrets.token_hex(4)}.sock"
        seconds = ledger().budgets.gateway_start_s
        log = self.trial_paths.trial_dir / "gateway.log"
        with (
            socket.create_server(("127.0.0.1", 0)) as mcp,
            _unix(self._data_socket) as data,
            log.open("ab") as complaints,
        ):
            fds = [mcp.fileno(), data.fileno(), complaints.fileno()]
            port = mcp.getsockname()[1]
            await self._ask("gateway", fds, config=config, start_s=seconds)
        self._endpoint = GatewayAddress(url=f"http://127.0.0.1:{port}/mcp/", token=token)
        await _answering(port, seconds)

    async def _run(
        self, argv: list[str], cwd: str | None, env: dict[str, str] | None, timeout_s: float | None
    ) -> command.Finished:
        if self._session is None or not self._name:
            raise SandboxDied("this box was stopped")
        try:
            return await command.run(
                self._session.channel,
                argv,
                box=self._name,
                env={**_ENV, **(self._merge_env(env) or {})},
                cwd=cwd or self.task_env_config.workdir or "/",
                timeout_s=timeout_s,
                max_output=_MAX_OUTPUT,
            )
        except RequestFailed as error:
            self._raise(error)

    async def _ask(self, op: str, fds: list[int] | None = None, **arguments: Any) -> dict[str, Any]:
        if self._session is None or not self._name:
            raise SandboxDied("this box was stopped")
        try:
            return await self._session.channel.ask(op, fds or [], box=self._name, **arguments)
        except RequestFailed as error:
            self._raise(error)

    async def _transfer(self, what: str, path: str, fds: list[int] | None = None) -> int:
        return int((await self._ask("transfer", fds, what=what, path=path))["status"])

    async def _send(self, directory: str, write: Callable[[IO[bytes]], None]) -> None:
        read_end, write_end = os.pipe()
        asking = asyncio.ensure_future(self._transfer("unpack", directory, [read_end]))
        await asyncio.sleep(0)
        os.close(read_end)
        with contextlib.suppress(BrokenPipeError):  # the box ended first; its status says why
            await asyncio.to_thread(_write_all, write_end, write)
        status = await asking
        if status == archive.FULL:
            raise DiskFull(f"{directory} in the box: the box has written all it may")
        if status == archive.BLOCKED and self._role() == "agent":
            raise KilledOwnBox(f"{directory} in the box: what the box holds stands in the way")
        if status != archive.DONE:
            raise TransferFailed(f"{directory} in the box could not be written")

    async def _fetch(self, source: str, target: Path) -> None:
        read_end, write_end = os.pipe()
        asking = asyncio.ensure_future(self._transfer("pack", source, [write_end]))
        await asyncio.sleep(0)
        os.close(write_end)
        broken = await asyncio.to_thread(_read_all, read_end, target)
        status = await asking
        if status == archive.MISSING:
            raise FileNotFoundError(f"{source} is not in the box")
        if status == archive.TOO_BIG:
            raise DiskFull(f"{source} in the box is larger than the box's storage")
        if status != archive.DONE or broken:
            raise TransferFailed(f"{source} in the box: {broken or 'could not be packed'}")

    def _raise(self, error: RequestFailed) -> Never:
        if error.code == "SandboxDied":
            raise self._own_doing or SandboxDied(error.message) from error
        if error.code == "DeadlineExceeded":
            raise DeadlineExceeded("start", ledger().budgets.start_s) from error
        raise SandboxStartFailed(f"{error.code}: {error.message}") from error

    def _ended(self, event: str, usage: Usage) -> None:
        """The fork server says that a part of this environment ended by itself."""
        if event == "gateway_exit":
            ledger().note(ServerDisconnected("the gateway is gone"))
        elif self._role() == "agent" and self._ran_out(usage):
            self._own_doing = KilledOwnBox("the agent's box ended because it used up its memory")
            ledger().note(self._own_doing)
        else:
            ledger().note(SandboxDied(f"the {self._role()}'s box is gone"))

    def _ran_out(self, usage: Usage) -> bool:
        """Whether the box hit its own limit: the host's killer also comes when the host is out."""
        near = 0.95 * self._limits.memory_mib
        return usage.oom_kills > 0 and usage.peak_memory_mib >= near

    def _account(self, closed: dict[str, Any]) -> None:
        """Enter what the boxes used, and what the agent's own code ran into."""
        book = ledger()
        usage = Usage(**closed["usage"])
        book.usage[self._role()] = usage
        book.usage[f"{self._role()}-gateway"] = Usage(**closed["gateway"])
        book.left += closed["left"]
        if self._role() != "agent":
            return
        with book.during("act"):
            if self._ran_out(usage):
                book.note(OutOfMemory(f"{usage.oom_kills} processes of the agent's box killed"))
            elif usage.oom_kills:
                book.note(
                    SandboxDied("the host ran out of memory and killed the agent's processes")
                )
            if usage.fork_refusals:
                book.note(ProcessLimit("the agent's box reached its limit of processes"))
            if usage.disk_full:
                book.note(DiskFull("the agent's box has written all it may"))
            if closed["endless"]:
                book.note(EndlessCommand(f"{closed['endless']} commands of the agent were killed"))


def _text(path: str | PurePath) -> str:
    return path if isinstance(path, str) else path.as_posix()


def _write_all(fd: int, write: Callable[[IO[bytes]], None]) -> None:
    with os.fdopen(fd, "wb") as stream:
        write(stream)


def _read_all(fd: int, target: Path) -> str:
    """Extract a stream; what was wrong with it, empty for nothing."""
    import tarfile

    with os.fdopen(fd, "rb") as stream:
        try:
            archive.extract(stream, target)
        except tarfile.ReadError as error:
            while stream.read(1 << 16):
                pass
            return str(error)
    return ""


def _unix(path: Path) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(str(path))
    sock.listen(16)
    return sock


async def _answering(port: int, seconds: float) -> None:
    """Wait until the gateway answers a request: the socket listens long before it does."""
    async with deadline("gateway_start", seconds):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        await writer.drain()
        status = await reader.readline()
        writer.close()
    if b" 200 " not in status and b" 401 " not in status:
        raise ServerStartFailed(f"the gateway answered {status[:60]!r} to /health")
