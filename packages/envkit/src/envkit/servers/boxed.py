# SPDX-License-Identifier: Apache-2.0
"""The gateway as it runs inside its box: forked by the fork server, confined, without a network.

Contract: it serves on descriptors it inherited and runs agent code only through the descriptor
that leads to its trial's agent box. It knows nothing else of the host.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from envkit.sandbox import command
from envkit.sandbox.channel import Channel, RequestFailed
from envkit.sandbox.spec import PARSED
from envkit.servers.command import CommandResult
from envkit.servers.config import GatewayConfig
from envkit.servers.gateway import build_data_app, serve

_OWN_DOING: Final = "KilledOwnBox"
"""A box whose agent used up its memory: told to the agent as what it is."""


def from_wire(data: Mapping[str, Any]) -> GatewayConfig:
    """A configuration from what crossed the sockets: servers, tools, the token, if read-only."""
    return GatewayConfig(
        servers=tuple(data["servers"]),
        tools=tuple(data.get("tools", ())),
        token=data["token"],
        read_only=data.get("read_only", False),
        parsed=Path(PARSED),
    )


def warm() -> None:
    """Compile the routes of the host's side, which warming up by a client never asks for."""
    build_data_app(from_wire({"servers": (), "token": ""}))


def main(config: dict[str, Any], mcp_fd: int, data_fd: int, executor_fd: int) -> None:
    """Serve until the box ends; called in the confined child."""
    asyncio.run(_serve(from_wire(config), mcp_fd, data_fd, executor_fd))


async def _serve(config: GatewayConfig, mcp_fd: int, data_fd: int, executor_fd: int) -> None:
    channel = Channel(socket.socket(fileno=executor_fd))

    def tell(tool: str, code: str) -> None:
        channel.tell("tool_fault", tool=tool, code=code)

    await serve(
        config,
        BoxRunner(channel),
        mcp_socket=socket.socket(fileno=mcp_fd),
        data_socket=socket.socket(fileno=data_fd),
        on_fault=tell,
    )


class BoxRunner:
    """Runs commands in the agent's box of the same trial."""

    def __init__(self, channel: Channel, box: str | None = None) -> None:
        self._channel = channel
        self._box = box

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        timeout_s: float,
        max_output: int,
    ) -> CommandResult:
        """Run ``argv`` there.

        Raises:
            RequestFailed: the box is gone, and not by its agent's doing.
            ChannelClosed: the fork server is gone.
        """
        try:
            done = await command.run(
                self._channel,
                argv,
                box=self._box,
                env=env,
                cwd=cwd,
                timeout_s=timeout_s,
                max_output=max_output,
            )
        except RequestFailed as error:
            if error.code != _OWN_DOING:
                raise
            return CommandResult(exit_code=-signal.SIGKILL, stdout=b"", stderr=b"", limit="memory")
        return CommandResult(
            exit_code=None if done.timed_out else _exit_code(done.status),
            stdout=done.stdout,
            stderr=done.stderr,
            timed_out=done.timed_out,
            limit=_limit(done),
            seconds=done.seconds,
            dropped_bytes=done.dropped,
        )


def _exit_code(status: int) -> int:
    """Minus the signal when a signal ended it, as `CommandResult` has it."""
    return 128 - status if 128 < status <= 128 + 64 else status


def _limit(done: command.Finished) -> str | None:
    """The limit a command ran into: one that ended well despite a refusal ran into none."""
    if done.oom_kills:
        return "memory"
    if done.fork_refusals and (done.status or done.timed_out):
        return "processes"
    return "disk" if done.disk_full else None
