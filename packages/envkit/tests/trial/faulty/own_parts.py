# SPDX-License-Identifier: Apache-2.0
"""Agents and environments as a user writes them, and environments that isolate less than they say.

None of them has a gateway. What they share lies under ``ENVKIT_TEST_SHARED``.
"""

import os
import re
import shutil
import time
from pathlib import Path
from typing import Any, Final, override

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.models.agent.context import AgentContext
from hiding_agent import Hiding

from envkit.sandbox import session
from envkit.sandbox.local import LocalEnvironment
from envkit.sandbox.unsafe import UnsafeProcessEnvironment

ELSEWHERE: Final = re.compile(r"(?<![\w./-])(/var/tmp|/tmp|/dev/shm|/proc)\b")
LOOK: Final = (
    "ls -A /filesystem /tmp /var/tmp /dev/shm | grep envkit-canary && exit 1; "
    "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep '^ENVKIT_CANARY=' && exit 1; "
)


def shared() -> Path:
    return Path(os.environ["ENVKIT_TEST_SHARED"])


class Does(Hiding):
    """Does the task by commands, as an agent of Harbor's does."""

    word = "done"

    @override
    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        await environment.exec(f"echo {self.word} > /filesystem/done.txt")
        await environment.exec("echo forty-two > /logs/artifacts/final_answer.txt")


class Writes(Does):
    """Does it with the word that it was given, where there is no mark to be seen."""

    def __init__(self, *args: Any, word: str, tries: int = 1, **more: Any) -> None:
        super().__init__(*args, **more)  # pyright: ignore[reportUnknownMemberType]
        self.word, self.tries = word, tries

    @override
    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        assert self.tries == 3
        seen = await environment.exec(f"{LOOK} true")
        assert seen.return_code == 0, seen.stdout
        await super().run(instruction, environment, context)


class TakesTurns(Does):
    """Has a turn for each of its commands, and tells when they ran."""

    @override
    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        for done, command in enumerate(
            (
                "echo done > /filesystem/done.txt; sleep 0.2",
                "echo forty-two > /logs/artifacts/final_answer.txt; sleep 0.2",
            )
        ):
            await session.turn(done)
            began = time.monotonic()
            await environment.exec(command)
            with (shared() / "worked").open("a") as told:
                told.write(f"{began} {time.monotonic()}\n")
            session.rest()


class Raises(Hiding):
    """Has a mistake."""

    @override
    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        raise KeyError("a mistake of the agent's own")


class Plain(UnsafeProcessEnvironment):
    """A provider of somebody's own without servers, made with a setting."""

    tool_endpoint = None  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]

    def __init__(self, *args: Any, label: str = "none", **more: Any) -> None:
        super().__init__(*args, **more)  # pyright: ignore[reportUnknownMemberType]
        assert label == "mine"

    @override
    def _serve(self, servers: tuple[str, ...]) -> None:
        """It has none."""

    @override
    def _rewrite(self, text: str) -> str:
        return super()._rewrite(ELSEWHERE.sub(rf"{self.root}\1", text))

    @override
    async def start(self, force_build: bool) -> None:
        await super().start(force_build)
        for place in ("tmp", "var/tmp", "dev/shm", "proc"):
            (self.root / place).mkdir(parents=True)


class OneDirectory(Plain):
    """Two trials at once write to one and the same directory, which each thinks is its own."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, label="mine", **more)

    @override
    async def start(self, force_build: bool) -> None:
        await super().start(force_build)
        if self.session_id.endswith("__env"):
            shutil.rmtree(self.root / "filesystem")
            (self.root / "filesystem").symlink_to(shared())


class UsedAgain(LocalEnvironment):
    """A box that finds what the one before it left."""

    @override
    async def start(self, force_build: bool) -> None:
        await super().start(force_build)
        if self._role() == "agent":
            await self.upload_dir(shared(), "/filesystem")

    @override
    async def stop(self, delete: bool) -> None:
        if self._role() == "agent":
            await self.download_dir("/filesystem", shared())
        await super().stop(delete)


class SecondVerifierDies(LocalEnvironment):
    """The box of the second grading does not come up."""

    verifiers = 0

    @override
    async def start(self, force_build: bool) -> None:
        if self._role() == "verifier":
            SecondVerifierDies.verifiers += 1
            if SecondVerifierDies.verifiers == 2:
                raise ConnectionResetError("Connection reset by peer")
        await super().start(force_build)


class GoneBox(LocalEnvironment):
    """A box in which no command can be run once the agent has acted."""

    @override
    async def exec(self, command: str, *args: Any, **more: Any) -> ExecResult:
        if self._tools_done and self._role() == "agent":
            raise ConnectionResetError("Connection reset by peer")
        return await super().exec(command, *args, **more)
