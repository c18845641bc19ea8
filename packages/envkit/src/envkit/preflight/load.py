# SPDX-License-Identifier: Apache-2.0
"""What was asked for beside the tasks, checked: pauses, idle time, rate of starts, arguments.

Contract: pure. Each function takes an option as it was given and raises HarnessError with one line
that says what to write instead.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from envkit.agent.recording import read_recording
from envkit.agent.think import Think, parse_think
from envkit.fault import HarnessError
from envkit.pace import STARTS_PER_S
from envkit.task import Task

HOLD_MOST_S: Final = 86_400.0
"""A day."""
STARTS_MOST: Final = 1000.0


def think_of(text: str, agent: str) -> Think:
    """``--think-time``: only a replay needs to be told how long its model takes."""
    think = parse_think(text)
    if text and agent != "replay":
        raise HarnessError(f"--think-time {text}: --agent {agent} takes its own time; leave it out")
    return think


def no_times(task: Task, think: Think) -> list[str]:
    """Why a task's recording cannot give the pauses; empty where it can."""
    if think.kind != "recorded" or task.calls_path is None:
        return []
    if read_recording(task.calls_path).has_times:
        return []
    return ['solution/calls.jsonl: no line has "think_s"; record it, or use lognormal:MEDIAN_S,1']


def hold_of(seconds: float) -> float:
    """``--hold``, in seconds."""
    if not 0 <= seconds <= HOLD_MOST_S:
        raise HarnessError(f"--hold {seconds:g}: not seconds from 0 to {HOLD_MOST_S:.0f}")
    return seconds


def starts_of(per_s: float | None) -> float:
    """``--starts-per-s``; a run without a limit is a herd, so there is no 0."""
    if per_s is None:
        return STARTS_PER_S
    if not 0 < per_s <= STARTS_MOST:
        raise HarnessError(
            f"--starts-per-s {per_s:g}: not above 0 and up to {STARTS_MOST:.0f}; "
            f"leave it out for {STARTS_PER_S:g}"
        )
    return per_s


def args_of(option: str, pairs: Sequence[str], own: bool) -> dict[str, Any]:
    """``--agent-arg`` and ``--env-arg``: names to values, JSON where they are, else text."""
    if pairs and not own:
        raise HarnessError(f"{option} {pairs[0]}: only module:Class takes arguments")
    named: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier() or name in named:
            raise HarnessError(f"{option} {pair}: write name=value, each name once")
        named[name] = _value(value)
    return named


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
