# SPDX-License-Identifier: Apache-2.0
"""A replay as an ATIF trajectory, built from Harbor's own models, so it is valid or not written."""

from collections.abc import Sequence

from harbor.models.trajectories import (
    Agent,
    Observation,
    ObservationResult,
    Step,
    ToolCall,
    Trajectory,
)

from envkit.agent.mcp_client import Tool, ToolResult
from envkit.agent.recording import Call


def trajectory(
    *,
    agent: tuple[str, str],
    session_id: str,
    instruction: str,
    tools: Sequence[Tool],
    steps: Sequence[tuple[Call, ToolResult]],
    final_answer: str | None,
) -> Trajectory:
    """The instruction, every call with what it returned, and the final answer."""
    done = [Step(step_id=1, source="user", message=instruction)]
    done += [_called(number, call, result) for number, (call, result) in enumerate(steps, 2)]
    if final_answer is not None:
        number = len(done) + 1
        done.append(Step(step_id=number, source="agent", message=final_answer, llm_call_count=0))
    name, version = agent
    definitions = [_definition(tool) for tool in tools]
    return Trajectory(
        session_id=session_id,
        agent=Agent(name=name, version=version, tool_definitions=definitions or None),
        steps=done,
    )


def _called(number: int, call: Call, result: ToolResult) -> Step:
    request = ToolCall(
        tool_call_id=result.call_id, function_name=call.tool, arguments=dict(call.arguments)
    )
    answer = ObservationResult(
        source_call_id=result.call_id,
        content=result.text,
        extra={"ok": result.ok, "code": result.code, "seconds": round(result.seconds, 6)},
    )
    return Step(
        step_id=number,
        source="agent",
        message="",
        tool_calls=[request],
        observation=Observation(results=[answer]),
        llm_call_count=0,
    )


def _definition(tool: Tool) -> dict[str, object]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.input_schema),
    }
    return {"type": "function", "function": function}
