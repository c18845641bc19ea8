# SPDX-License-Identifier: Apache-2.0
"""A whole trial over an environment that is nowhere, run once in the process that trials fork from.

Contract: what a first trial allocates and imports is there before the fork, where all trials share
its pages. It starts nothing, reads no task of anybody, leaves no file and no thread. By the time
its agent acts, a trial's process has 9 MiB of its own; without the rehearsal it had 16.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import tempfile
from pathlib import Path
from typing import Any, Final, override

from harbor.environments.base import ExecResult

from envkit.agent.mcp_client import Endpoint
from envkit.deadline import DEFAULT_BUDGETS
from envkit.sandbox import ledger
from envkit.sandbox.provider import OnThisMachine
from envkit.servers.command import LocalRunner
from envkit.servers.config import GatewayConfig
from envkit.servers.gateway import serve
from envkit.trial.record import attempt_from_dict, attempt_to_dict, write_attempt
from envkit.trial.request import TrialRequest
from envkit.trial.run import run_trial

_TASK: Final = """schema_version = "1.4"
[agent]
timeout_sec = 60
[verifier]
timeout_sec = 60
environment_mode = "separate"
[[environment.mcp_servers]]
name = "world"
transport = "streamable-http"
url = "http://127.0.0.1:8000/mcp/"
"""
_CALLS: Final = """{"tool": "filesystem_server_list_files", "arguments": {"path": "/"}}
{"tool": "filesystem_server_read_text_file", "arguments": {"file_path": "/instruction.md"}}
{"final_answer": "rehearsed"}
"""
_TOKEN: Final = "rehearsal"
_FILES: Final = {
    "task.toml": _TASK,
    "instruction.md": "Rehearse.",
    "environment/Dockerfile": "FROM scratch",
    "tests/test.sh": "true",
    "solution/calls.jsonl": _CALLS,
}


class Nowhere(OnThisMachine):
    """Accepts everything and does nothing; a folder that is fetched holds a reward."""

    port: int = 0
    """Where the gateway of the rehearsal listens."""

    @staticmethod
    @override
    def type() -> str:
        return "envkit-nowhere"

    @override
    async def start(self, force_build: bool) -> None: ...

    @override
    async def stop(self, delete: bool) -> None: ...

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None: ...

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None: ...

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None: ...

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        _leave_reward(Path(target_dir))

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
        return ExecResult(stdout="", stderr="", return_code=0)

    async def tool_endpoint(self) -> Endpoint:
        return Endpoint(url=f"http://127.0.0.1:{self.port}/mcp/", token=_TOKEN)


def rehearse() -> None:
    """Run the trial.

    Raises:
        RuntimeError: it does not end with its reward.
    """
    with tempfile.TemporaryDirectory(prefix="envkit-rehearsal-") as folder:
        asyncio.run(_rehearse(Path(folder)))


async def _rehearse(folder: Path) -> None:
    config = GatewayConfig(root=folder / "rehearsal", apps_data=folder, token=_TOKEN)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        Nowhere.port = listening.getsockname()[1]
        work = serve(config, LocalRunner(), mcp_socket=listening, data_socket=None)
        serving = asyncio.create_task(work)
        try:
            await _act(folder)
        finally:
            serving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await serving


async def _act(folder: Path) -> None:
    task = folder / "rehearsal"
    for name, text in _FILES.items():
        (task / name).parent.mkdir(parents=True, exist_ok=True)
        (task / name).write_text(text)
    request = TrialRequest(
        trial_id="rehearsal__000",
        attempt=1,
        task_dir=task,
        trials_dir=folder / "trials",
        agent="replay",
        environment=f"{__name__}:{Nowhere.__name__}",
    )
    request = TrialRequest.from_dict(request.to_dict())
    book = ledger.begin(lambda _: None, DEFAULT_BUDGETS)
    attempt = await run_trial(request, book, _at_once)
    write_attempt(request.trials_dir / request.trial_name, attempt)
    if not attempt_from_dict(attempt_to_dict(attempt)).reward_valid:
        raise RuntimeError(f"the rehearsal of a trial failed: {attempt.faults}")


def _leave_reward(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "reward.json").write_text('{"reward": 0}')


async def _at_once() -> None: ...
