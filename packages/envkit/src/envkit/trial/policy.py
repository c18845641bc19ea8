# SPDX-License-Identifier: Apache-2.0
"""The agent ``model`` of a trial: what it is made of, and how long it may take.

Contract: a task's time for its agent is the model's own, sampling and its own commands. Waiting for
an engine, a start or a faulted tool is nobody's, so the trial may take longer by the clock; beyond
`wall_s` it is ended, and that is a fault of the infrastructure unless the time was the model's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from envkit.task import load_task
from envkit.trial.request import TrialRequest

NAME: Final = "model"
"""On command lines and records."""
AGENT: Final = "envkit.agent.model:ModelAgent"
PRELOAD: Final = "envkit.agent.warm:warm"
"""What the process that forks the trials does first."""

VLLM: Final = "vllm:"
"""Begins the name of an engine that is to be started, before the directory of its model."""

_VOICE: Final = ("tokenizer", "family", "parser", "template", "variables")

WAITS: Final = 4.0
"""Times its own time that an episode may take by the clock: three parts in four may be waiting."""
WAITS_LEAST_S: Final = 1800.0
"""What is granted for waiting at least: three whole queues of an engine, ten minutes each."""
DAY_S: Final = 86_400.0
"""Of an episode whose own time nobody bounds."""


def absolute(engine: str) -> str:
    """The name of an engine, as a process in another directory needs it."""
    if not engine.startswith(VLLM):
        return engine
    return f"{VLLM}{Path(engine.removeprefix(VLLM)).resolve()}"


def own_s(args: Mapping[str, Any], task_s: float) -> float:
    """Seconds of its own that an episode may use; 0 for all."""
    return float(limits_of(args).get("own_s", task_s))


def limits_of(args: Mapping[str, Any]) -> dict[str, Any]:
    """Of `envkit.trajectory.types.Limits`, those that an agent's arguments set."""
    limits: Mapping[str, Any] | None = args.get("limits")
    return dict(limits or {})


def wall_s(args: Mapping[str, Any], task_s: float) -> float:
    """Seconds by the clock that an episode may take."""
    own = own_s(args, task_s)
    return max(WAITS * own, own + WAITS_LEAST_S) if own else DAY_S


def kwargs_of(request: TrialRequest) -> dict[str, Any]:
    """Keyword arguments of the agent of one trial."""
    args = dict(request.agent_args)
    task_s = load_task(request.task_dir).agent_timeout_s
    args["limits"] = {**limits_of(args), "own_s": own_s(args, task_s)}
    args["budgets"] = {**asdict(request.budgets), **(args.get("budgets") or {})}
    return {"expected_tools": list(request.expected_tools), **args}


def agent_wall_s(request: TrialRequest) -> float:
    """Seconds by the clock after which Harbor ends the agent."""
    task_s = load_task(request.task_dir).agent_timeout_s
    return wall_s(request.agent_args, task_s)


def preload_of(args: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of `PRELOAD`, of an agent's."""
    return {name: args[name] for name in _VOICE if name in args}
