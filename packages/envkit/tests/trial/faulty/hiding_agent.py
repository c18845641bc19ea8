# SPDX-License-Identifier: Apache-2.0
"""Agents that go on without a word, whatever happened to their tools, their box or their time."""

import asyncio
import contextlib
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any, override

import faulty_hands
from harbor.agents.base import BaseAgent
from harbor.agents.capabilities import AgentCapabilities
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

from envkit.agent.mcp_client import Endpoint, ToolClient
from envkit.deadline import DEFAULT_BUDGETS
from envkit.fault import EnvkitError

ANSWER = "/logs/artifacts/final_answer.txt"
CODE = "code_execution_server_code_exec"


class Hiding(BaseAgent):
    """The base of those that hide."""

    capabilities = AgentCapabilities(mcp_servers=True, mcp_http_headers=True)

    @staticmethod
    @override
    def name() -> str:
        return "hiding"

    @override
    def version(self) -> str:
        return "1"

    @override
    async def setup(self, environment: BaseEnvironment) -> None:
        pass

    async def call(self, environment: Any, code: str, *, wait_s: float, **more: Any) -> None:
        """One tool call; what goes wrong with it stays between the two of them."""
        address = await environment.tool_endpoint()
        endpoint = Endpoint(url=address.url, token=address.token)
        budgets = replace(DEFAULT_BUDGETS, mcp_call_s=wait_s)
        with contextlib.suppress(EnvkitError):
            async with ToolClient.open(endpoint, budgets) as tools:
                await tools.call(CODE, {"code": code, **more})


class GivesUpOnItsTool(Hiding):
    """Its own client gives up; the command did nothing wrong."""

    @override
    async def run(self, instruction: str, environment: Any, context: AgentContext) -> None:
        await self.call(environment, "sleep 20", wait_s=1)


class LosesItsGateway(Hiding):
    """Talks to its gateway by itself, finds it silent, and says nothing."""

    @override
    async def run(self, instruction: str, environment: Any, context: AgentContext) -> None:
        address = await environment.tool_endpoint()
        inode = _inode_of_listener(int(address.url.split(":")[2].split("/")[0]))
        os.kill(await faulty_hands.gateway_with(inode), signal.SIGSTOP)


def _inode_of_listener(port: int) -> int:
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    local, listening = f"0100007F:{port:04X}", "0A"
    return next(int(row[9]) for row in rows if (row[1], row[3]) == (local, listening))


class OutlivesItsLimit(Hiding):
    """Runs a command without an end through the environment, as agents of Harbor do."""

    @override
    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        await environment.exec("echo done > /filesystem/done.txt; sleep 1000", timeout_sec=2)


class UsesUpItsTime(Hiding):
    """One command of its own takes all the time there is."""

    @override
    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        await environment.exec("echo done > /filesystem/done.txt; sleep 1000", timeout_sec=600)


class WastesItsTime(Hiding):
    """The harness lets the time go by; no command of the model ran."""

    @override
    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        await asyncio.Event().wait()


class TellsItsEnvironment(Hiding):
    """Answers with a key of the user's environment."""

    @override
    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        answer = Path(self.logs_dir) / "answer.txt"
        answer.write_text(os.environ.get("ENVKIT_TEST_KEY", "no key") + "\n")
        await environment.upload_file(answer, ANSWER)
