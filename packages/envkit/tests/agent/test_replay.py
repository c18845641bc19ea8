# SPDX-License-Identifier: Apache-2.0
"""The replay agent against a real server: what it does, leaves, and says when it cannot."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from harbor.agents.factory import AgentFactory
from harbor.models.agent.context import AgentContext
from harbor.models.task.config import MCPServerConfig
from harbor.models.trajectories import Trajectory
from harbor.models.trial.config import AgentConfig
from harbor.utils.trajectory_validator import TrajectoryValidator

from envkit.agent.mcp_client import Endpoint
from envkit.agent.replay import FINAL_ANSWER, ReplayAgent
from envkit.fault import (
    ExtraTools,
    MissingTools,
    Owner,
    Phase,
    ServerDisconnected,
    TaskError,
    TokenExpired,
    UnexpectedToolError,
    classify,
)
from envkit.sandbox.ledger import begin

pytestmark = pytest.mark.integration

ANSWER = {"final_answer": "42\n"}


class Desk:
    """As much of an environment as an agent on the host touches: an endpoint and a file system."""

    def __init__(self, root: Path, endpoint: Endpoint) -> None:
        self.root = root
        self.environment_dir = root / "task" / "environment"
        self.endpoint = endpoint

    async def tool_endpoint(self) -> Endpoint:
        return self.endpoint

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        target = self.root / target_path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source_path, target)


def echo(text: str, **more: Any) -> dict[str, Any]:
    return {"tool": "echo", "arguments": {"text": text}, **more}


def record(tmp_path: Path, *lines: dict[str, Any]) -> Path:
    path = tmp_path / "task" / "solution" / "calls.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def replay(
    tmp_path: Path, endpoint: Endpoint, *lines: dict[str, Any], **settings: Any
) -> AgentContext:
    """Set up and run the agent; its logs are under ``tmp_path/logs``."""
    record(tmp_path, *lines)
    logs = tmp_path / "logs"
    logs.mkdir()
    agent, context = ReplayAgent(logs, **settings), AgentContext()
    desk: Any = Desk(tmp_path, endpoint)

    async def main() -> None:
        await agent.setup(desk)
        await agent.run("Find the number.", desk, context)

    asyncio.run(main())
    return context


def log(tmp_path: Path) -> list[dict[str, Any]]:
    text = (tmp_path / "logs" / "calls.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def trajectory(tmp_path: Path) -> Trajectory:
    path = tmp_path / "logs" / "trajectory.json"
    validator = TrajectoryValidator()
    assert validator.validate(path), validator.get_errors()
    return Trajectory.model_validate_json(path.read_text(encoding="utf-8"))


def test_every_recorded_call_is_made_and_the_answer_left(tmp_path: Path, real_server: Any) -> None:
    failing = {"tool": "refuse", "arguments": {"why": "no sheet"}, "expect_error": True}
    context = replay(tmp_path, real_server.endpoint, echo("a"), failing, echo("b"), ANSWER)
    assert (tmp_path / FINAL_ANSWER.lstrip("/")).read_text(encoding="utf-8") == "42\n"
    assert [line["tool"] for line in log(tmp_path)] == ["echo", "refuse", "echo"]
    assert [line["ok"] for line in log(tmp_path)] == [True, False, True]
    assert len({line["call_id"] for line in log(tmp_path)}) == 3
    assert context.metadata == {"tool_calls": 3, "tool_errors": 1}


def test_the_trajectory_is_what_harbor_takes(tmp_path: Path, real_server: Any) -> None:
    replay(tmp_path, real_server.endpoint, echo("a\u2028b"), echo("c"), ANSWER)
    document = trajectory(tmp_path)
    assert [step.source for step in document.steps] == ["user", "agent", "agent", "agent"]
    step = document.steps[1]
    assert step.tool_calls is not None
    assert step.observation is not None
    assert step.tool_calls[0].function_name == "echo"
    assert step.tool_calls[0].tool_call_id == step.observation.results[0].source_call_id
    assert step.observation.results[0].content == "a\u2028b"
    assert document.steps[-1].message == "42\n"
    assert document.agent.tool_definitions is not None


def test_a_call_that_fails_unexpectedly_is_the_servers_and_named(
    tmp_path: Path, real_server: Any
) -> None:
    failing = {"tool": "refuse", "arguments": {"why": "no such sheet"}}
    with pytest.raises(UnexpectedToolError, match=r"refuse failed: .*no such sheet") as caught:
        replay(tmp_path, real_server.endpoint, echo("a"), failing, echo("b"), ANSWER)
    fault = classify(caught.value, Phase.ACT)
    assert (fault.owner, fault.policy.reward_valid) == (Owner.SERVER, False)
    assert [line["tool"] for line in log(tmp_path)] == ["echo", "refuse"]
    assert len(trajectory(tmp_path).steps) == 3
    assert not (tmp_path / FINAL_ANSWER.lstrip("/")).exists()


def test_a_recording_that_a_tool_refuses_by_right_is_the_tasks(
    tmp_path: Path, real_server: Any
) -> None:
    refused = {"tool": "refuse_by_right", "arguments": {"why": "no page 9"}}
    with pytest.raises(TaskError, match=r"refuse_by_right refused .*no page 9"):
        replay(tmp_path, real_server.endpoint, refused, ANSWER)


def test_a_call_recorded_as_failing_that_succeeds_is_unexpected_too(
    tmp_path: Path, real_server: Any
) -> None:
    with pytest.raises(UnexpectedToolError, match="was recorded as failing, but succeeded"):
        replay(tmp_path, real_server.endpoint, echo("a", expect_error=True), ANSWER)


def test_missing_tools_are_named_before_the_first_call(tmp_path: Path, real_server: Any) -> None:
    frob = {"tool": "frob_server_frobnicate", "arguments": {}}
    with pytest.raises(MissingTools, match=r"frob_server_frobnicate; listed: .*echo"):
        replay(tmp_path, real_server.endpoint, echo("a"), frob, ANSWER)
    assert not (tmp_path / "logs" / "calls.jsonl").exists()
    assert len(trajectory(tmp_path).steps) == 1


TOOLS = (
    *("big", "call_id", "calls_given_up", "chatty", "count", "crash", "die", "echo", "envelope"),
    *("forever", "leave", "nothing", "refuse", "refuse_by_right"),
)


@pytest.mark.parametrize(
    ("expected", "error", "says"),
    [
        (TOOLS, None, ""),
        ((), None, ""),
        ((*TOOLS, "frob"), MissingTools, "not listed: frob"),
        (TOOLS[1:], ExtraTools, "listed but not expected: big"),
        ((*TOOLS[1:], "frob"), MissingTools, "not listed: frob"),
    ],
)
def test_the_tools_listed_are_those_expected(
    tmp_path: Path, real_server: Any, expected: Any, error: Any, says: str
) -> None:
    def run() -> None:
        replay(tmp_path, real_server.endpoint, echo("a"), ANSWER, expected_tools=expected)

    if error is None:
        return run()
    with pytest.raises(error, match=says):
        run()
    return None


def test_pauses_and_idle_time_are_booked_apart(tmp_path: Path, real_server: Any) -> None:
    book = begin()
    book.enter("act")
    calls = (echo("a", think_s=1), echo("b", think_s=2), ANSWER)
    replay(tmp_path, real_server.endpoint, *calls, think="recorded*0.05", hold_s=0.2)
    book.enter("")
    assert book.seconds["think"] >= 0.15
    assert book.seconds["idle"] >= 0.2
    assert set(book.seconds) == {"act", "think", "idle"}


def test_a_token_that_expires_while_the_trial_is_idle_is_named(
    tmp_path: Path, forgetful_server: Any
) -> None:
    with pytest.raises(TokenExpired, match="it accepted this token before") as caught:
        replay(tmp_path, forgetful_server.endpoint, echo("a"), echo("b"), ANSWER, hold_s=1.0)
    fault = classify(caught.value, Phase.ACT)
    assert (fault.owner, fault.policy.reward_valid) == (Owner.SERVER, False)
    assert [line["tool"] for line in log(tmp_path)] == ["echo"]


def test_a_server_that_dies_leaves_what_was_done(tmp_path: Path, mortal_server: Any) -> None:
    die = {"tool": "die", "arguments": {}}
    with pytest.raises(ServerDisconnected):
        replay(tmp_path, mortal_server.endpoint, echo("a"), die, echo("b"), ANSWER)
    assert [line["tool"] for line in log(tmp_path)] == ["echo"]
    assert len(trajectory(tmp_path).steps) == 2


def test_a_file_that_cannot_be_left_in_time_is_a_transfer_deadline(
    tmp_path: Path, real_server: Any
) -> None:
    class Stuck(Desk):
        async def upload_file(self, source_path: Path | str, target_path: str) -> None:
            await asyncio.get_running_loop().create_future()

    calls, logs = record(tmp_path, echo("a"), ANSWER), tmp_path / "logs"
    logs.mkdir()
    agent = ReplayAgent(logs, calls_path=str(calls), budgets={"transfer_s": 0.2})
    stuck: Any = Stuck(tmp_path, real_server.endpoint)

    async def main() -> None:
        await agent.setup(stuck)
        await agent.run("Find it.", stuck, AgentContext())

    with pytest.raises(Exception, match=r"transfer did not finish within 0\.2 s"):
        asyncio.run(main())
    assert trajectory(tmp_path).steps[-1].tool_calls is not None


def test_a_broken_recording_fails_in_setup(tmp_path: Path, real_server: Any) -> None:
    path = record(tmp_path, echo("a"))
    path.write_text("{", encoding="utf-8")
    desk: Any = Desk(tmp_path, real_server.endpoint)
    with pytest.raises(TaskError, match=r"calls\.jsonl:1: not JSON"):
        asyncio.run(ReplayAgent(tmp_path).setup(desk))


def test_without_an_endpoint_the_tasks_own_server_is_used_with_its_headers(
    tmp_path: Path, real_server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_TOKEN", real_server.endpoint.token)
    server = MCPServerConfig(
        name="world",
        transport="streamable-http",
        url=real_server.endpoint.url,
        headers={"Authorization": "Bearer ${GATEWAY_TOKEN}"},
    )
    record(tmp_path, echo("a"), ANSWER)
    config = AgentConfig(import_path="envkit.agent.replay:ReplayAgent")
    agent = AgentFactory.create_agent_from_config(config, logs_dir=tmp_path, mcp_servers=[server])

    class Plain:
        environment_dir = tmp_path / "task" / "environment"
        upload_file = Desk(tmp_path, real_server.endpoint).upload_file

    plain: Any = Plain()

    async def main() -> None:
        await agent.setup(plain)
        await agent.run("Find it.", plain, AgentContext())

    asyncio.run(main())
    (line,) = (tmp_path / "calls.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["ok"] is True
