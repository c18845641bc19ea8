# SPDX-License-Identifier: Apache-2.0
"""Running the agent's own commands, away from the gateway.

`CommandRunner` is the seam: a sandbox supplies one that enters the agent's sibling box;
`LocalRunner` runs on this machine, for stdio and for `--env unsafe-process`. Invariants of both:
standard input is the null device, output beyond `max_output` bytes is dropped from the middle and
counted, a child left in the background never holds the call, and a command that runs out of time
is killed with its whole process group.
"""

import asyncio
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Protocol

from envkit.sandbox.output import HeadTail
from envkit.servers.fds import exit_status, kill, reading, reap_later

DRAIN_S = 0.2
"""How long output of a finished command may still arrive from a child it left behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """How one command ended. Exactly one of exit code, timeout, restart describes it."""

    exit_code: int | None
    """None when the command did not end by itself; minus the signal when a signal ended it."""
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    box_restarted: bool = False
    """The box the command ran in died and was made anew: its processes and /tmp are gone."""
    limit: str | None = None
    """The limit it hit: "memory", "processes" or "disk"."""
    seconds: float = 0.0
    dropped_bytes: int = 0
    """Output that was not kept."""


class CommandRunner(Protocol):
    """Runs one command and says truthfully how it ended."""

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        timeout_s: float,
        max_output: int,
    ) -> CommandResult:
        """Run `argv`; never raises for what the command did."""
        ...


class LocalRunner:
    """Runs commands on this machine, each in its own process group. No isolation."""

    async def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        timeout_s: float,
        max_output: int,
    ) -> CommandResult:
        """Run `argv` in `cwd` with exactly `env`; kills the group on timeout or cancellation."""
        started = time.monotonic()
        out, err = HeadTail(max_output), HeadTail(max_output)
        process = _spawn(argv, cwd, env)
        async with (
            reading(_detach(process.stdout), out.feed) as out_ended,
            reading(_detach(process.stderr), err.feed) as err_ended,
        ):
            exit_code = await _exit_code(process, timeout_s)
            await asyncio.wait([out_ended, err_ended], timeout=DRAIN_S)
        return CommandResult(
            exit_code=exit_code,
            stdout=out.bytes(),
            stderr=err.bytes(),
            timed_out=exit_code is None,
            seconds=time.monotonic() - started,
            dropped_bytes=out.dropped + err.dropped,
        )


def _spawn(argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        list(argv),
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _detach(stream: IO[bytes] | None) -> int:
    """The descriptor under a pipe of Popen, now ours to close."""
    assert stream is not None
    fd = os.dup(stream.fileno())
    stream.close()
    return fd


async def _exit_code(process: "subprocess.Popen[bytes]", timeout_s: float) -> int | None:
    """The command's own exit code, or None when time ran out and its group was killed."""
    try:
        async with asyncio.timeout(timeout_s):
            process.returncode = await exit_status(process.pid)
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            kill(process.pid, group=True)
            reap_later(process.pid)
            process.returncode = -9
    return process.returncode
