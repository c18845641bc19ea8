# SPDX-License-Identifier: Apache-2.0
"""``unsafe-process``: a Harbor environment without isolation, for machines that allow no boxes.

Contract: an explicit choice, one trial at a time, rewards never valid. Commands run as this user
on this machine with the fixed paths of a task (``/filesystem``, ``/logs``, ...) rewritten to a
temporary directory; the gateway runs in the trial's own process.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import shutil
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any, Final, override

from harbor.environments.base import ExecResult

from envkit.deadline import DeadlineExceeded
from envkit.fault import ServerStartFailed
from envkit.sandbox.nursery import resolve
from envkit.sandbox.prepare import cache_directory
from envkit.sandbox.provider import OnThisMachine
from envkit.sandbox.spec import GatewayAddress
from envkit.task import World, load_task, materialize

_FIXED: Final = ("logs", "tests", "solution", "filesystem")
_PATH: Final = re.compile(r"(?<![\w./-])/(?=(?:" + "|".join(_FIXED) + r")\b)")
_GATEWAY: Final = "envkit.servers.unboxed:serve_unboxed"
_DEFAULT_EXEC_S: Final = 600.0


class UnsafeProcessEnvironment(OnThisMachine):
    """Processes of this machine over a temporary directory."""

    _root: Path | None = None
    _address: GatewayAddress | None = None
    _serving: asyncio.Task[None] | None = None

    @staticmethod
    @override
    def type() -> str:
        return "envkit-unsafe-process"

    @property
    def root(self) -> Path:
        """The temporary directory that stands for ``/``."""
        assert self._root is not None, "start() comes first"
        return self._root

    @override
    async def start(self, force_build: bool) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="envkit-unsafe-"))
        for name in ("logs/agent", "logs/verifier", "logs/artifacts", "tests", "solution"):
            (self.root / name).mkdir(parents=True)
        world = load_task(self.environment_dir.parent).world
        if world and self.session_id.endswith("__env"):
            files = await asyncio.to_thread(materialize, world, cache_directory())
            shutil.copytree(files / "filesystem", self.root / "filesystem")
        (self.root / "filesystem").mkdir(exist_ok=True)
        (self.root / "apps_data").mkdir(exist_ok=True)
        if world and self.session_id.endswith("__env"):
            self._serve(world)

    @override
    async def stop(self, delete: bool) -> None:
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait([self._serving])
        if self._root is not None and delete:
            shutil.rmtree(self._root, ignore_errors=True)

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        target = self._here(target_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source_path, target)

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        shutil.copytree(source_dir, self._here(target_dir), dirs_exist_ok=True)

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(self._here(source_path), target_path)

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        shutil.copytree(self._here(source_dir), target_dir, dirs_exist_ok=True)

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
        seconds = float(timeout_sec or _DEFAULT_EXEC_S)
        process = await asyncio.create_subprocess_exec(
            "/bin/bash",
            "-c",
            self._rewrite(command),
            cwd=self._here(cwd or "/"),
            env={**os.environ, **self._env(), **(self._merge_env(env) or {})},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(seconds):
                out, err = await process.communicate()
        except TimeoutError as error:
            raise DeadlineExceeded("exec", seconds) from error
        finally:
            await _end(process)
        return ExecResult(
            stdout=out.decode(errors="replace"),
            stderr=err.decode(errors="replace"),
            return_code=process.returncode or 0,
        )

    async def tool_endpoint(self) -> GatewayAddress:
        """Where this trial's gateway answers.

        Raises:
            ServerStartFailed: the task has no world, so there is no gateway.
        """
        if self._address is None:
            raise ServerStartFailed("this environment has no gateway; the task has no world")
        return self._address

    def _serve(self, world: World) -> None:
        token = secrets.token_urlsafe(24)
        sock = socket.create_server(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{sock.getsockname()[1]}/mcp/"
        self._address = GatewayAddress(url=url, token=token)
        serve = resolve(_GATEWAY)
        work = serve(self.root, world.servers, world.tools, token, self._rewrite, self._env(), sock)
        self._serving = asyncio.ensure_future(work)

    def _rewrite(self, text: str) -> str:
        return _PATH.sub(f"{self.root}/", text)

    def _env(self) -> dict[str, str]:
        return {"PATH": _path(), **self._roots()}

    def _here(self, path: str) -> Path:
        return (
            self.root / path.lstrip("/")
            if path.strip("/").split("/")[0] in {"", *_FIXED}
            else Path(path)
        )

    def _roots(self) -> dict[str, str]:
        """For scripts that take their roots from the environment."""
        names = {"FILESYSTEM_ROOT": "filesystem", "LOGS_ROOT": "logs", "TESTS_ROOT": "tests"}
        return {name: str(self.root / path) for name, path in names.items()}


def _path() -> str:
    """The interpreter of envkit's own environment is the one that has the promised packages."""
    return f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
