# SPDX-License-Identifier: Apache-2.0
"""What replays of recorded calls left behind, read from their ``trajectory.json`` (ATIF).

Calls of one tool that follow each other are one turn that asks for them in parallel.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envkit.agent.types import CallRequest, ToolSpec
from rltrain.refused import Refused

RECORDING = "trajectory.json"
"""As `envkit preflight` leaves it in the agent's directory of every trial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Calls, and what each came to."""

    calls: tuple[CallRequest, ...]
    results: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """One task, done."""

    instruction: str
    tools: tuple[ToolSpec, ...]
    turns: tuple[Turn, ...]
    answer: str


def read_transcripts(directory: Path) -> tuple[Transcript, ...]:
    """One transcript for each task recorded under ``directory``, by their instructions.

    Raises:
        Refused: there is none, or one cannot be read.
    """
    found = sorted(directory.rglob(RECORDING))
    if not found:
        raise Refused(
            f"{directory}: no {RECORDING} in it; "
            f"record some: envkit preflight TASKS --agent replay --report {directory}"
        )
    by_task = {each.instruction: each for each in map(_read, found)}
    return tuple(by_task[instruction] for instruction in sorted(by_task))


def _read(file: Path) -> Transcript:
    try:
        document: dict[str, Any] = json.loads(file.read_text("utf-8"))
        first, *steps = document["steps"]
        definitions = document["agent"]["tool_definitions"]
        turns = tuple(_turns([each for each in steps if each.get("tool_calls")]))
        return Transcript(
            instruction=first["message"],
            tools=tuple(_tool(each["function"]) for each in definitions),
            turns=turns,
            answer=steps[-1]["message"],
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise Refused(
            f"{file}: is no recording of a replay ({type(error).__name__}: {error}); "
            "give the report directory of a preflight with --agent replay"
        ) from error


def _tool(function: Mapping[str, Any]) -> ToolSpec:
    return ToolSpec(
        name=function["name"],
        description=function["description"],
        parameters=function["parameters"],
    )


def _turns(steps: Sequence[Mapping[str, Any]]) -> Iterator[Turn]:
    together: list[Mapping[str, Any]] = []
    for step in steps:
        if together and _name(step) != _name(together[0]):
            yield _turn(together)
            together = []
        together.append(step)
    if together:
        yield _turn(together)


def _name(step: Mapping[str, Any]) -> str:
    return step["tool_calls"][0]["function_name"]


def _turn(steps: Sequence[Mapping[str, Any]]) -> Turn:
    asked = [each["tool_calls"][0] for each in steps]
    calls = (CallRequest(name=each["function_name"], arguments=each["arguments"]) for each in asked)
    results = (each["observation"]["results"][0]["content"] for each in steps)
    return Turn(calls=tuple(calls), results=tuple(results))
