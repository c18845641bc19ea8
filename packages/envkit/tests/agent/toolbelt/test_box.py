# SPDX-License-Identifier: Apache-2.0
"""Commands through an environment that is not ours and does not say who ended them."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from envkit.agent.toolbelt.box import Box, Ran
from envkit.deadline import DEFAULT_BUDGETS


class Foreign:
    """Runs commands on this machine."""

    async def exec(self, command: str, *, timeout_sec: int | None = None) -> Any:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec("bash", "-c", command, stdout=pipe)
        said, _ = await process.communicate()
        status = await process.wait()
        return SimpleNamespace(
            return_code=status if status >= 0 else 128 - status, stdout=said.decode()
        )

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        raise NotImplementedError


def ran(command: str, timeout_s: int) -> Ran:
    return asyncio.run(Box(Foreign(), DEFAULT_BUDGETS).run(command, timeout_s))


@pytest.mark.parametrize("status", [0, 3, 124, 137])
def test_a_command_that_ends_by_itself_was_not_ended_whatever_it_ends_with(status: int) -> None:
    assert ran(f"echo said >&2; exit {status}", 60) == Ran(status=status, output="said\n")


@pytest.mark.parametrize("command", ["sleep 60", "trap '' TERM; sleep 60 & wait"])
def test_a_command_that_outlives_its_limit_is_ended_and_what_it_said_is_kept(command: str) -> None:
    found = ran(f"echo said; {command}", 1)
    assert (found.timed_out, found.output) == (True, "said\n")
