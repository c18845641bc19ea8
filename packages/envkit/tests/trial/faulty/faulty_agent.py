# SPDX-License-Identifier: Apache-2.0
"""Agents with one fault, named by their trial as in `faulty_box`."""

import asyncio
from pathlib import Path
from typing import Any, override

from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

from envkit.agent.replay import ReplayAgent


def _misbehaviour(logs_dir: Path, operation: str) -> str:
    wanted, kind, _, *later = logs_dir.parent.name.split(".")
    return kind if wanted == operation and not later else ""


async def _misbehave(kind: str) -> None:
    match kind:
        case "hang":
            await asyncio.Event().wait()
        case "raise":
            raise RuntimeError("an error of the agent's own")
        case "timeout":
            raise TimeoutError("timed out")
        case "reset":
            raise ConnectionResetError("Connection reset by peer")
        case _:
            pass


class FaultyAgent(ReplayAgent):
    """Fails while it is set up, or while it acts."""

    @override
    async def setup(self, environment: BaseEnvironment) -> None:
        kind = _misbehaviour(self.logs_dir, "setup")
        await _misbehave(kind)
        if kind == "die":
            await environment.kill_box()  # pyright: ignore
            await environment.exec("true")
        if kind == "garbage":
            self._calls_path = self.logs_dir / "broken.jsonl"
            self._calls_path.write_bytes(b'{"tool": \x80\xff\n')
        await super().setup(environment)

    @override
    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        await _misbehave(_misbehaviour(self.logs_dir, "act"))
        await super().run(instruction, environment, context)


class UnbuildableAgent(ReplayAgent):
    """Cannot be made."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)  # pyright: ignore[reportUnknownMemberType]
        raise RuntimeError("an error of the constructor's own")


class EndlessAgent(ReplayAgent):
    """Acts until it is stopped."""

    @override
    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        await asyncio.Event().wait()


class CommandAgent(FaultyAgent):
    """Works by one command in its box, not through the gateway."""

    @override
    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        await environment.exec(
            "echo done > /filesystem/done.txt; echo forty-two > /logs/artifacts/final_answer.txt"
        )
