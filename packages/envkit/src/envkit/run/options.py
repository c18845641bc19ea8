# SPDX-License-Identifier: Apache-2.0
"""The command line of ``envkit run``, and what in it cannot stand together.

Contract: an option that was not named is not told to the agent, so that each default stands in one
place: `Limits` and `Sampling` in `envkit.trajectory.types`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from envkit.fault import HarnessError
from envkit.preflight.engine import Serve, model_args
from envkit.preflight.load import args_of
from envkit.preflight.plan import Request
from envkit.trial import policy

LIMITS: Final = {
    "context_tokens": "context_tokens",
    "turns_cap": "turns",
    "tool_calls": "tool_calls",
    "tokens_per_turn": "tokens_per_turn",
    "own_s": "own_s",
    "tool_result_tokens": "tool_result_tokens",
    "repairs": "repairs",
    "nudge_ratio": "nudge_ratio",
}
"""Options, and what they are in `Limits`."""
SAMPLING: Final = ("temperature", "top_p", "top_k", "min_p", "top_logprobs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The command line, as it was given."""

    source: Path
    out: Path | None = None
    """The directory of the run."""
    engine: str = ""
    """A URL, or ``vllm:`` and the directory of a model."""
    model: str = ""
    """Name it is served by; empty for the first that the engine lists."""
    tokenizer: Path | None = None
    engine_python: Path | None = None
    """Interpreter that has vLLM."""
    engine_arg: tuple[str, ...] = ()
    """More of vLLM's own."""
    samples: int = 1
    """Of each task."""
    concurrency: int = 6
    limit: int | None = None
    env: str = "local"
    env_arg: tuple[str, ...] = ()
    toolbelt: str = "mcp"
    final_answer_tool: bool = False
    todo_tool: bool = False
    toolbelt_tools: bool = False
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    top_logprobs: int | None = None
    context_tokens: int | None = None
    turns_cap: int | None = None
    """Of one episode."""
    tool_calls: int | None = None
    tokens_per_turn: int | None = None
    own_s: float | None = None
    """None for what the task gives its agent."""
    tool_result_tokens: int | None = None
    repairs: int | None = None
    nudge_ratio: float | None = None
    evaluation: bool = False
    agent_arg: tuple[str, ...] = ()
    """``name=value``: whatever else `envkit.agent.settings.ModelSettings` takes."""
    at_work: int | None = None
    """How many trials work at once; None for a few a core, 0 for all."""
    starts_per_s: float | None = None
    seed: int = 0
    as_json: bool = False
    events: Path | None = None
    resume: Path | None = None
    """The directory of a run that was killed or interrupted."""
    given: frozenset[str] = frozenset()
    """Which of these were named on the command line."""


def request(options: Options, trials: Path, token: str) -> Request:
    """What is to be planned; the directories of trials go under ``trials``.

    Raises:
        HarnessError: an option means nothing.
    """
    return Request(
        source=options.source,
        out_dir=trials,
        run_token=token,
        agent=policy.NAME,
        env=options.env,
        concurrency=options.concurrency,
        repeat=options.samples,
        limit=options.limit,
        max_fault_rate=1.0,
        seed=options.seed,
        starts_per_s=options.starts_per_s,
        turns=options.at_work,
        agent_args=options.agent_arg,
        env_args=options.env_arg,
        model_args=_args(options),
        gated=False,
    )


def serve(options: Options, root: Path) -> Serve:
    """How the engine of the run is started, where one is to be."""
    return Serve(
        log=root / "engine.log", python=options.engine_python, arguments=options.engine_arg
    )


def _args(options: Options) -> dict[str, Any]:
    more: dict[str, Any] = {
        "toolbelt": options.toolbelt,
        "extras": _extras(options),
        "evaluation": options.evaluation,
        "limits": _named(options, LIMITS),
        "sampling": _named(options, {name: name for name in SAMPLING}),
    }
    twice = args_of("--agent-arg", options.agent_arg, own=True)
    if both := sorted(more.keys() & twice.keys()):
        raise HarnessError(f"--agent-arg {both[0]}=…: has options of its own; see envkit run -h")
    return model_args(
        engine=options.engine,
        model=options.model,
        tokenizer=options.tokenizer,
        more={**more, **twice},
    )


def _extras(options: Options) -> list[str]:
    wanted = {
        "final_answer": options.final_answer_tool,
        "todo_write": options.todo_tool,
        "toolbelt": options.toolbelt_tools,
    }
    return [name for name, yes in wanted.items() if yes]


def _named(options: Options, names: Mapping[str, str]) -> dict[str, Any]:
    """Those that were named, by what the agent calls them."""
    values = {theirs: getattr(options, ours) for ours, theirs in names.items()}
    return {name: value for name, value in values.items() if value is not None}
