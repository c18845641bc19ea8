# SPDX-License-Identifier: Apache-2.0
"""The turns of an episode as an ATIF trajectory, built from Harbor's own models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from harbor.models.trajectories import (
    Agent,
    Metrics,
    Observation,
    ObservationResult,
    Step,
    ToolCall,
    Trajectory,
)

from envkit.agent.history import Acted, History, Turn
from envkit.agent.types import Message, ToolSpec


def turns_trajectory(
    history: History,
    *,
    agent: tuple[str, str, str],
    session_id: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
) -> Trajectory:
    """The prompt, every turn with its calls and results, and what the loop said between them.

    ``agent`` is its name, its version and the model's name.
    """
    name, version, model = agent
    steps = [Step(step_id=1, source=_source(each), message=each.content) for each in messages]
    for turn, number in zip(history.turns, range(len(history.turns)), strict=True):
        steps.append(_turn(turn, history, number))
        steps += [Step(step_id=1, source="user", message=turn.told)] if turn.told else []
    numbered = [step.model_copy(update={"step_id": n}) for n, step in enumerate(steps, 1)]
    definitions = [tool.to_openai() for tool in tools]
    return Trajectory(
        session_id=session_id,
        agent=Agent(
            name=name,
            version=version,
            model_name=model or None,
            tool_definitions=definitions or None,
        ),
        steps=numbered,
    )


def _source(message: Message) -> Literal["system", "user"]:
    return "system" if message.role == "system" else "user"


def _turn(turn: Turn, history: History, number: int) -> Step:
    request = history.requests[number]
    calls = [_call(acted) for acted in turn.acted]
    results = list(_results(turn.acted))
    return Step(
        step_id=1,
        source="agent",
        message=turn.parsed.content,
        reasoning_content=turn.parsed.thinking or None,
        tool_calls=calls or None,
        observation=Observation(results=results) if results else None,
        metrics=Metrics(
            prompt_tokens=request.prompt_tokens, completion_tokens=request.sampled_tokens
        ),
        llm_call_count=1,
    )


def _call(acted: Acted) -> ToolCall:
    call = acted.observation.call
    return ToolCall(
        tool_call_id=call.call_id, function_name=call.name, arguments=dict(call.arguments)
    )


def _results(acted: Sequence[Acted]) -> Iterator[ObservationResult]:
    for each in acted:
        seen = each.observation
        yield ObservationResult(
            source_call_id=seen.call.call_id,
            content=seen.text,
            extra={"ok": seen.ok, "code": seen.code, "seconds": round(seen.seconds, 6)},
        )
