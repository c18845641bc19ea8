# SPDX-License-Identifier: Apache-2.0
"""The agent that replays a task's recorded tool calls through the gateway, as an agent would.

It needs no model, so a reward below the full one is the environment's fault. Before a call it may
wait as long as a model would sample, and after the first it may sit idle as a trial does that waits
for its engine; both are booked apart from its work. Loaded by Harbor as
``envkit.agent.replay:ReplayAgent``. Whatever happens, what was done until then is on disk:
``calls.jsonl`` (one line a call) and ``trajectory.json`` (ATIF) in the agent's log directory.
"""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, override, runtime_checkable

from harbor.agents.base import BaseAgent
from harbor.agents.capabilities import AgentCapabilities
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

from envkit import __version__
from envkit.agent.atif import trajectory
from envkit.agent.mcp_client import Endpoint, Tool, ToolClient, ToolResult
from envkit.agent.recording import Call, Recording, read_recording
from envkit.agent.think import parse_think
from envkit.agent.toolbelt import list_checked
from envkit.deadline import DEFAULT_BUDGETS, within
from envkit.fault import HarnessError, TaskError, UnexpectedToolError
from envkit.sandbox.ledger import ledger
from envkit.sandbox.session import rest, turn

FINAL_ANSWER = "/logs/artifacts/final_answer.txt"
"""Where the agent's answer lies in the box; Harbor always collects this directory."""

_HEAD_CHARS = 500
"""Of a result's text on the call log; the trajectory has the whole."""


@runtime_checkable
class HasToolEndpoint(Protocol):
    """An environment that knows where its gateway answers, with its token."""

    async def tool_endpoint(self) -> Endpoint:
        """Where the tools of this trial answer."""
        ...


@runtime_checkable
class ForgetsTools(Protocol):
    """An environment that wants to know when its gateway has nothing more to answer."""

    def tools_done(self) -> None:
        """Every call was answered; closing follows."""
        ...


class ReplayAgent(BaseAgent):
    """Replays ``solution/calls.jsonl`` call by call and leaves the recorded final answer."""

    capabilities = AgentCapabilities(atif=True, mcp_servers=True, mcp_http_headers=True)

    def __init__(
        self,
        logs_dir: Path,
        *args: Any,
        calls_path: str | Path | None = None,
        budgets: Mapping[str, float] | None = None,
        think: str = "",
        seed: str = "",
        hold_s: float = 0.0,
        expected_tools: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        """Take a recording's path (default: the task's own) and budgets that differ, in seconds.

        ``think`` and ``seed`` give the pauses before the calls (`envkit.agent.think`); ``hold_s``
        is the idle time after the first call; ``expected_tools`` are all the servers may list.
        """
        super().__init__(logs_dir, *args, **kwargs)  # pyright: ignore[reportUnknownMemberType]
        self._calls_path = None if calls_path is None else Path(calls_path)
        self._budgets = replace(DEFAULT_BUDGETS, **(budgets or {}))
        self._pause_s = parse_think(think).pauses(seed)
        self._hold_s = hold_s
        self._expected = tuple(expected_tools)
        self._recording = Recording(calls=(), final_answer=None)
        self._tools: tuple[Tool, ...] = ()
        self._done: list[tuple[Call, ToolResult]] = []
        self._answered = False

    @staticmethod
    @override
    def name() -> str:
        """As it stands on records and reports."""
        return "replay"

    @override
    def version(self) -> str:
        """The version of envkit."""
        return __version__

    @override
    async def setup(self, environment: BaseEnvironment) -> None:
        """Read the recording, so that a broken one fails before the agent's clock runs."""
        self._recording = read_recording(self._calls_path or _default_calls(environment))

    @override
    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        """Replay; raises what `list_checked` does, TaskError, UnexpectedToolError."""
        try:
            endpoint = await self._endpoint(environment)
            async with ToolClient.open(endpoint, self._budgets) as client:
                self._tools = await list_checked(client, self._expected, self._recording.tools)
                await self._replay_all(client)
                if isinstance(environment, ForgetsTools):
                    environment.tools_done()
            await self._answer(environment)
        finally:
            self._write_trajectory(instruction)
            failed = sum(not result.ok for _, result in self._done)
            context.metadata = {"tool_calls": len(self._done), "tool_errors": failed}

    async def _endpoint(self, environment: BaseEnvironment) -> Endpoint:
        if isinstance(environment, HasToolEndpoint):
            seconds = self._budgets.gateway_start_s
            return await within("gateway_start", seconds, environment.tool_endpoint())
        server = next((each for each in self.mcp_servers if each.url), None)
        if server is None or server.url is None:
            raise HarnessError(
                "replay: the task names no MCP server; add [[environment.mcp_servers]]"
            )
        headers = self.mcp_header_env
        refs = headers.refs.get(server.name, {})
        values = {name: headers.env[variable] for name, variable in refs.items()}
        return Endpoint(url=server.url, headers=values)

    async def _replay_all(self, client: ToolClient) -> None:
        for number, call in enumerate(self._recording.calls):
            if number == 1:
                await self._idle(client)
            await _spend("think", self._pause_s(call))
            await self._replay(client, call)
        if len(self._recording.calls) < 2:
            await self._idle(client)

    async def _idle(self, client: ToolClient) -> None:
        """Let the connection, the session and the token grow old; then they must still serve."""
        if self._hold_s:
            await _spend("idle", self._hold_s)
            await client.list_tools()

    async def _replay(self, client: ToolClient, call: Call) -> None:
        number = len(self._done) + 1
        waited_s = await turn(number)
        call_id = f"replay-{number}"
        result = await client.call(call.tool, call.arguments, call_id=call_id)
        self._done.append((call, result))
        self._log(call, result, waited_s)
        if not result.ok and not call.expect_error and result.structured.get("owner") == "model":
            said = result.text[:_HEAD_CHARS]
            raise TaskError(f"{call.tool} refused what the recording asks of it: {said}")
        if result.ok is call.expect_error:
            said = "was recorded as failing, but succeeded" if result.ok else "failed"
            raise UnexpectedToolError(f"{call.tool} {said}: {result.text[:_HEAD_CHARS]}")

    async def _answer(self, environment: BaseEnvironment) -> None:
        if self._recording.final_answer is None:
            return
        path = self.logs_dir / "final_answer.txt"
        path.write_text(self._recording.final_answer, encoding="utf-8")
        upload = environment.upload_file(path, FINAL_ANSWER)
        await within("transfer", self._budgets.transfer_s, upload)
        self._answered = True

    def _log(self, call: Call, result: ToolResult, waited_s: float) -> None:
        line = {
            "at": time.time(),
            "call_id": result.call_id,
            "tool": call.tool,
            "ok": result.ok,
            "code": result.code,
            "seconds": round(result.seconds, 6),
            "waited_s": round(waited_s, 6),
            "text": result.text[:_HEAD_CHARS],
        }
        with (self.logs_dir / "calls.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def _write_trajectory(self, instruction: str) -> None:
        document = trajectory(
            agent=(self.name(), self.version()),
            session_id=self.session_id or self.logs_dir.name,
            instruction=instruction,
            tools=self._tools,
            steps=self._done,
            final_answer=self._recording.final_answer if self._answered else None,
        )
        text = json.dumps(document.to_json_dict(), ensure_ascii=False, indent=1)
        (self.logs_dir / "trajectory.json").write_text(text, encoding="utf-8")


async def _spend(phase: str, seconds: float) -> None:
    """Wait, and have it booked under a name of its own."""
    if seconds:
        with ledger().during(phase):
            rest()
            await asyncio.sleep(seconds)


def _default_calls(environment: BaseEnvironment) -> Path:
    return environment.environment_dir.parent / "solution" / "calls.jsonl"
