# SPDX-License-Identifier: Apache-2.0
"""The gateway without a box, for ``--env unsafe-process``: in the trial's own process.

Contract: the same servers over the same protocol; commands run on this machine as this user, with
a task's fixed paths rewritten by ``rewrite``. Nothing is isolated.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from envkit.servers.command import CommandResult, CommandRunner, LocalRunner
from envkit.servers.config import GatewayConfig
from envkit.servers.gateway import serve

Rewrite = Callable[[str], str]


async def serve_unboxed(
    root: Path,
    servers: tuple[str, ...],
    tools: tuple[str, ...],
    token: str,
    rewrite: Rewrite,
    env: Mapping[str, str],
    sock: socket.socket,
) -> None:
    """Serve the documents under ``root`` on a listening socket until cancelled."""
    documents = root / "filesystem"
    config = GatewayConfig(
        root=documents,
        apps_data=root / "apps_data",
        servers=servers,
        tools=tools,
        token=token,
        command_root=str(documents),
    )
    await serve(config, _Rewriting(LocalRunner(), rewrite, env), mcp_socket=sock, data_socket=None)


class _Rewriting:
    """Runs commands with a task's fixed paths turned into real ones."""

    def __init__(self, runner: CommandRunner, rewrite: Rewrite, env: Mapping[str, str]) -> None:
        self._runner = runner
        self._rewrite = rewrite
        self._env = env

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        timeout_s: float,
        max_output: int,
    ) -> CommandResult:
        """Run ``argv`` rewritten; see `CommandRunner`."""
        return await self._runner.run(
            [self._rewrite(part) for part in argv],
            cwd=self._rewrite(cwd),
            env={**env, **self._env},
            timeout_s=timeout_s,
            max_output=max_output,
        )
