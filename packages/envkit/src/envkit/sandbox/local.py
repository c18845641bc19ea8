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
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, Final, Never, override

from harbor.environments.base import ExecResult

from envkit.deadline import DeadlineExceeded
from envkit.fault import (
    EndlessCommand,
    EnvkitError,
    HostOverloaded,
    KilledOwnBox,
    Phase,
    SandboxDied,
    SandboxStartFailed,
    ServerDisconnected,
    ServerError,
    ServerStartFailed,
    TransferFailed,
)
from envkit.sandbox import archive, carrier, command
from envkit.sandbox.account import account
from envkit.sandbox.channel import RequestFailed
from envkit.sandbox.gateway import Gateway, start_gateway
from envkit.sandbox.ledger import ledger
from envkit.sandbox.limits import Limits
from envkit.sandbox.lodging import AGENT_PATH
from envkit.sandbox.prepare import Prepared
from envkit.sandbox.provider import OnThisMachine
from envkit.sandbox.session import Session, session
from envkit.sandbox.spec import BoxSpec, GatewayAddress

_MAX_OUTPUT: Final = 4 << 20
"""Bytes of output kept of one command of the harness."""

_ENV: Final = {"PATH": AGENT_PATH, "HOME": "/root", "LANG": "C.UTF-8"}
_ENDINGS: Final[Mapping[str, type[EnvkitError]]] = {
    "SandboxDied": SandboxDied,
    "KilledOwnBox": KilledOwnBox,
    "ServerDisconnected": ServerDisconnected,
}


class LocalEnvironment(OnThisMachine):
    """One box, and with MCP servers a gateway beside it."""

    judges_timeouts: Final = True
    """A command that outlives its limit ends with the name of whose doing that is."""

    _session: Session | None = None
    _name: str = ""
    _limits: Limits = Limits()
    _gateway: Gateway | None = None
    _tools_done: bool = False

    @staticmethod
    @override
    def type() -> str:
        return "envkit-local"

    @override
    async def start(self, force_build: bool) -> None:
        self._session = await session()
        prepared = await asyncio.to_thread(self._session.prepare, self.environment_dir.parent)
        self._name = self._session.box_name(self._role())
        self._session.handlers[self._name] = self._told
        spec = self._spec(prepared)
        self._limits = spec.limits
        if self._role() == "agent":
            ledger().agent_storage_mib = spec.limits.storage_mib
        await self._ask("open", spec=spec.to_dict())
        if not self._enable_environment_dir_upload:
            await self.upload_dir(self.environment_dir, "/tests")
        if self._role() == "agent" and self.task_env_config.mcp_servers:
            await self._start_gateway(self._session, prepared)

    @override
    async def stop(self, delete: bool) -> None:
        if self._session is None or not self._name:
            return
        name, self._name = self._name, ""
        self._session.handlers.pop(name, None)
        if self._gateway is not None:
            self._gateway.forget()
        try:
            closed = await self._session.channel.ask("close", box=name)
        except RequestFailed as error:
            if error.code != "KeyError":  # a box that never opened has nothing to close
                raise SandboxDied(error.message) from error
            return
        account(ledger(), self._role(), closed, self._limits)

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
        if done.timed_out:
            raise self._outlived(done, timeout_sec or 0)
        return ExecResult(
            stdout=done.stdout.decode(errors="replace"),
            stderr=done.stderr.decode(errors="replace"),
            return_code=done.status,
        )

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        await carrier.send_file(self._transfer, Path(source_path), PurePosixPath(target_path))

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        await carrier.send_dir(self._transfer, Path(source_dir), target_dir)

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        self._must_be_open(source_path)
        await carrier.fetch_file(self._transfer, source_path, Path(target_path))

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        self._must_be_open(source_dir)
        await carrier.fetch_dir(self._transfer, source_dir, Path(target_dir))

    @override
    async def is_dir(self, path: str, user: str | int | None = None) -> bool:
        return await self._transfer("kind", path, []) == archive.IS_DIRECTORY

    @override
    async def is_file(self, path: str, user: str | int | None = None) -> bool:
        return await self._transfer("kind", path, []) == archive.IS_FILE

    @override
    async def empty_dirs(self, dirs: Any, *, chmod: bool = True) -> ExecResult | None:
        for path in dirs:
            if await self._transfer("empty", _text(path), []) != archive.DONE:
                raise TransferFailed(f"{path} in the box could not be emptied")
        return ExecResult(stdout="", stderr="", return_code=0)

    async def settle(self) -> None:
        """The agent has ended: stop what it left running, and see that its gateway still answers.

        An agent may have gone on without its tools and said nothing of it.
        """
        await self._ask("sweep")
        if self._gateway is not None and not self._tools_done:
            await self._gateway.check(ledger().budgets.mcp_connect_s)

    async def tool_endpoint(self) -> GatewayAddress:
        """Where this trial's gateway answers.

        Raises:
            ServerStartFailed: the task declares no MCP servers, so there is none.
        """
        if self._gateway is None:
            raise ServerStartFailed("this environment has no gateway; the task declares no servers")
        return self._gateway.address

    def tools_done(self) -> None:
        """The agent has every answer it asked for: what its gateway comes to now costs nothing."""
        self._tools_done = True

    @property
    def data_socket(self) -> Path | None:
        """Host-side Unix socket of ``/data/populate`` and ``/data/snapshot``."""
        return self._gateway.data_socket if self._gateway else None

    def _must_be_open(self, path: str) -> None:
        """Harbor looks for logs also where a trial failed before its box was asked for."""
        if not self._name:
            raise FileNotFoundError(f"{path}: this box is not open")

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
        if self._role() == "verifier":
            held = limits.storage_mib + ledger().agent_storage_mib
            limits = replace(limits, storage_mib=held)
        return BoxSpec(
            name=self._name,
            root=prepared.root,
            world=prepared.world if self._role() == "agent" else None,
            parsed=prepared.parsed if self._role() == "agent" else None,
            limits=limits,
            network=self._network_is_public,
            start_s=min(ledger().budgets.start_s, config.build_timeout_sec),
        )

    async def _start_gateway(self, at: Session, prepared: Prepared) -> None:
        ledger().enter("gateway")
        seconds = ledger().budgets.gateway_start_s

        async def ask(fds: list[int]) -> object:
            try:
                return await self._ask("gateway", fds, start_s=seconds)
            except SandboxStartFailed as error:
                raise ServerStartFailed(f"no box for the gateway: {error}") from error

        self._gateway = await start_gateway(
            ask,
            servers=prepared.servers,
            tools=prepared.tools,
            stage=at.stage,
            log=self.trial_paths.trial_dir / "gateway.log",
            seconds=seconds,
        )

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
                agent=self._role() == "agent" and ledger().phase is Phase.ACT,
            )
        except RequestFailed as error:
            _raise(error)

    async def _ask(self, op: str, fds: list[int] | None = None, **arguments: Any) -> dict[str, Any]:
        if self._session is None or not self._name:
            raise SandboxDied("this box was stopped")
        try:
            return await self._session.channel.ask(op, fds or [], box=self._name, **arguments)
        except RequestFailed as error:
            _raise(error)

    async def _transfer(self, what: str, path: str, fds: list[int]) -> int:
        return int((await self._ask("transfer", fds, what=what, path=path))["status"])

    def _outlived(self, done: command.Finished, timeout_s: float) -> EnvkitError:
        """Whose doing it is that a command was killed at its limit."""
        if done.starved:
            return HostOverloaded(f"no core for a command that was to end within {timeout_s:g} s")
        if self._role() == "agent" and ledger().phase is Phase.ACT:
            fault = EndlessCommand(f"a command of the agent did not end within {timeout_s:g} s")
            fault.output = done.stdout.decode(errors="replace")
            return fault
        return DeadlineExceeded("exec", timeout_s)

    def _told(self, event: str, error: str) -> None:
        """The fork server says something of this environment that nobody asked."""
        if event == "tool_fault":
            ledger().note(ServerError(error))
        else:
            self._ended(error)

    def _ended(self, error: str) -> None:
        """The fork server says that a part of this environment ended by itself.

        What was still needed of it fails by itself, except where the agent hides that.
        """
        gateway = error == "ServerDisconnected"
        if gateway and self._gateway is None:
            return  # it never answered, and that is told
        needed = not self._tools_done if gateway else self._role() == "agent"
        part = "gateway" if gateway else "box"
        book = ledger()
        with contextlib.nullcontext() if needed else book.during("stop"):
            book.note(_ENDINGS[error](f"the {self._role()}'s {part} is gone"))


def _raise(error: RequestFailed) -> Never:
    if error.code in _ENDINGS:
        raise _ENDINGS[error.code](error.message) from error
    if error.code == "DeadlineExceeded":
        raise DeadlineExceeded("start", ledger().budgets.start_s) from error
    raise SandboxStartFailed(f"{error.code}: {error.message}") from error


def _text(path: str | PurePath) -> str:
    return path if isinstance(path, str) else path.as_posix()
