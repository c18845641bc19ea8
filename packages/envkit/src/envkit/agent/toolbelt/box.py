# SPDX-License-Identifier: Apache-2.0
"""The agent's box, through any Harbor environment: commands, and files that are put there.

Contract: a command that outlives its limit is the model's own, and what it said until then is not
lost. Everything else that fails here is the environment's own fault, and is raised as such.
"""

from __future__ import annotations

import asyncio
import itertools
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from envkit.deadline import Budgets, within
from envkit.fault import EndlessCommand

FILE_S: Final = 30
"""Seconds of a command of ours that looks at files or takes them away."""
KEPT: Final = "/tmp/tool_results"
"""Where results that are too long lie whole, for commands to read."""
_GRACE_S: Final = 15
_ENDED, _KILLED = 124, 137
_AT_LIMIT: Final = (_ENDED, _KILLED)
"""What ``timeout`` ends with when it had to end its command; a command may end so by itself."""


class Environment(Protocol):
    """As much of Harbor's environment as is used."""

    async def exec(self, command: str, *, timeout_sec: int | None = None) -> Any:
        """Run a command in the box."""
        ...

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        """Carry a file into the box."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A command that ran."""

    status: int
    output: str
    """Standard output and error, as they came."""
    timed_out: bool = False


class Box:
    """Of one trial."""

    def __init__(self, environment: Environment, budgets: Budgets) -> None:
        self._environment = environment
        self._budgets = budgets
        self._numbers = itertools.count(1)

    async def run(self, command: str, timeout_s: int) -> Ran:
        """Run a command of bash; raises what the environment does."""
        if getattr(self._environment, "judges_timeouts", False):
            return await self._run_judged(command, timeout_s)
        limited = shlex.join(
            ["timeout", "-k", "5", str(timeout_s), "bash", "-c", f"exec 2>&1\n{command}"]
        )
        clock = asyncio.get_running_loop().time
        began = clock()
        done = await self._environment.exec(limited, timeout_sec=timeout_s + _GRACE_S)
        at_limit = done.return_code in _AT_LIMIT and clock() - began >= timeout_s
        return Ran(status=done.return_code, output=done.stdout or "", timed_out=at_limit)

    async def script(self, script: str, *arguments: str, timeout_s: int) -> Ran:
        """Run a script of ours with arguments of the model's, which bash never reads as code."""
        return await self.run(shlex.join(["bash", "-c", script, "bash", *arguments]), timeout_s)

    async def put(self, path: str, data: bytes) -> None:
        """Leave a file in the box, by the trusted hands that carry every file."""
        with tempfile.NamedTemporaryFile(prefix="envkit-put-") as file:
            await asyncio.to_thread(Path(file.name).write_bytes, data)
            upload = self._environment.upload_file(file.name, path)
            await within("transfer", self._budgets.transfer_s, upload)

    def unused(self) -> str:
        """A path in the box for something that is carried in."""
        return f"/tmp/.put-{next(self._numbers)}"

    async def _run_judged(self, command: str, timeout_s: int) -> Ran:
        """Where the environment itself tells whose doing it is that a command did not end."""
        try:
            done = await self._environment.exec(f"exec 2>&1\n{command}", timeout_sec=timeout_s)
        except EndlessCommand as error:
            return Ran(status=_ENDED, output=error.output, timed_out=True)
        return Ran(status=done.return_code, output=done.stdout or "")
