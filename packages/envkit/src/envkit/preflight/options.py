# SPDX-License-Identifier: Apache-2.0
"""The command line of ``envkit preflight``, and what in it cannot stand together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envkit.fault import HarnessError
from envkit.preflight.levels import parse_levels
from envkit.preflight.load import args_of
from envkit.preflight.plan import Request
from envkit.preflight.text import share
from envkit.trial import policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The command line, as it was given."""

    source: Path
    agent: str
    env: str
    concurrency: int
    repeat: int | None
    limit: int | None
    max_fault_rate: str
    """In percent, with or without its sign."""
    seed: int
    as_json: bool
    report_dir: Path | None
    think_time: str = ""
    """``recorded``, ``recorded*0.1``, ``lognormal:MEDIAN_S,SIGMA`` or seconds."""
    hold: float = 0.0
    """Seconds."""
    grade_twice: bool = False
    starts_per_s: float | None = None
    turns: int | None = None
    agent_arg: tuple[str, ...] = ()
    """``name=value``"""
    env_arg: tuple[str, ...] = ()
    engine: str = ""
    """Of the agent ``model``: a URL, or ``vllm:`` and the directory of a model."""
    model: str = ""
    """Name it is served by."""
    tokenizer: Path | None = None
    engine_python: Path | None = None
    """Interpreter that has vLLM."""
    resume: Path | None = None
    """The directory of a run that was killed, to go on with."""
    rerun_failed: Path | None = None
    """The directory of a run, to run again what failed in it."""
    ramp: str | None = None
    """Concurrencies, lowest first; instead of one."""
    baseline: Path | None = None
    """A report, or its directory, to compare with."""
    max_slowdown: str | None = None
    """In percent: beyond it a comparison breaches the gate."""
    estimate: str | None = None
    """``steps=200,prompts=16,samples=16``."""
    junit: Path | None = None
    markdown: Path | None = None
    quarantine: Path | None = None
    chaos: Path | None = None
    """Faults to inject, as `envkit.preflight.chaos.rules` reads them."""
    score_chaos: Path | None = None
    """The directory of a run with ``chaos``; scored in place of a run."""
    given: frozenset[str] = frozenset()
    """Which of these were named on the command line."""


def check(options: Options) -> None:
    """Raises HarnessError where two of them contradict each other, or a ramp is none."""
    if options.ramp and "concurrency" in options.given:
        raise HarnessError("--ramp and --concurrency: a ramp names its own; name one")
    if options.ramp and options.chaos:
        raise HarnessError("--ramp and --chaos: a ramp measures sound trials; name one")
    if options.agent != policy.NAME and {"engine", "model", "tokenizer"} & options.given:
        raise HarnessError(f"--agent {options.agent}: only --agent model has an engine")
    levels_of(options)


def levels_of(options: Options) -> tuple[int, ...]:
    """Concurrencies of a ramp; none where there is no ramp."""
    return parse_levels(options.ramp) if options.ramp is not None else ()


def resumes(options: Options) -> bool:
    """Whether another process may go on with the run, should it be killed."""
    return options.ramp is None and options.chaos is None


def outputs(options: Options) -> dict[str, Path | None]:
    """Files that are written beside the report, by option."""
    return {
        "junit": options.junit,
        "markdown": options.markdown,
        "quarantine": options.quarantine,
    }


def request(options: Options, trials: Path, token: str) -> Request:
    """What is to be planned; the directories of trials go under ``trials``."""
    return Request(
        source=options.source,
        out_dir=trials,
        run_token=token,
        agent=options.agent,
        env=options.env,
        concurrency=max(levels_of(options), default=options.concurrency),
        repeat=options.repeat,
        limit=options.limit,
        max_fault_rate=share("--max-fault-rate", options.max_fault_rate),
        seed=options.seed,
        think=options.think_time,
        hold_s=options.hold,
        grade_twice=options.grade_twice,
        starts_per_s=options.starts_per_s,
        turns=options.turns,
        agent_args=options.agent_arg,
        model_args=_model_args(options),
        env_args=options.env_arg,
    )


def _model_args(options: Options) -> dict[str, Any]:
    if options.agent != policy.NAME:
        return {}
    from envkit.preflight.engine import model_args  # what it imports, no other agent needs

    more = args_of("--agent-arg", options.agent_arg, own=True)
    return model_args(
        engine=options.engine, model=options.model, tokenizer=options.tokenizer, more=more
    )
