# SPDX-License-Identifier: Apache-2.0
"""From a directory of tasks to the trials of a run.

Contract: deterministic; the same directory and the same request give the same trials with the
same ids, and no two trials share one. Tasks are repeated until the concurrency is filled exactly
once, as in training, and each runs at least once; ``repeat`` gives every task that many samples
instead. A task that fails its static checks is listed as broken and not run; it costs no other
task its trials.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from envkit.agent.think import Think
from envkit.fault import HarnessError
from envkit.preflight.load import args_of, hold_of, no_times, starts_of, think_of
from envkit.preflight.names import slugs_of, trial_id
from envkit.preflight.types import BrokenTask, Plan, TrialSpec
from envkit.task import Problem, Severity, Task, find_tasks, lint, load_task
from envkit.trial import policy
from envkit.trial.load import LoadShape

KNOWN_AGENTS: Final = ("replay", "oracle", "nop", policy.NAME)
KNOWN_ENVS: Final = ("local", "unsafe-process")
UNSAFE: Final = "unsafe-process"
IMPORT_PATH: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user asked for."""

    source: Path
    out_dir: Path
    run_token: str
    agent: str = "replay"
    env: str = "local"
    concurrency: int = 6
    repeat: int | None = None
    """Samples of every task; None fills the concurrency once."""
    limit: int | None = None
    """Only the first tasks, by name."""
    max_fault_rate: float = 0.005
    seed: int = 0
    think: str = ""
    """Time between the calls of a replay, as `envkit.agent.think.parse_think` reads it."""
    hold_s: float = 0.0
    """Seconds in which each trial sits idle."""
    grade_twice: bool = False
    """Grade every trial a second time; else the first of each task that has several."""
    starts_per_s: float | None = None
    """None is the rate that suits our own boxes."""
    turns: int | None = None
    """How many trials work at once; None for a few a core, 0 for all."""
    agent_args: tuple[str, ...] = ()
    """``name=value`` for ``model``, or for an agent of the user's own."""
    model_args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """More keyword arguments of ``model``, which those before replace."""
    gated: bool = True
    """Held to its fault rate and its concurrency, and to verifiers that grade alike."""
    env_args: tuple[str, ...] = ()
    """The same for an environment."""

    def load(self, sample: int) -> LoadShape:
        """What a trial does beside its task."""
        return LoadShape(
            think=self.think,
            hold_s=self.hold_s,
            canary=self.run_token,
            grade_twice=self.grade_twice or (self.gated and sample == 0 and (self.repeat or 0) > 1),
            seed=self.seed,
        )


def make_plan(request: Request) -> Plan:
    """Lints every task and lays out the trials of the sound ones.

    Raises:
        TaskError: the directory is missing or holds no task.
        HarnessError: an option is out of its range, or the agent or the environment is none that
            we know the form of.
    """
    known("--agent", request.agent, KNOWN_AGENTS)
    known("--env", request.env, KNOWN_ENVS)
    think = think_of(request.think, request.agent)
    hold_of(request.hold_s)
    agent_args = _agent_args(request)
    env_args = args_of("--env-arg", request.env_args, ":" in request.env)
    dirs = [path.resolve() for path in find_tasks(request.source)[: request.limit]]
    slugs = slugs_of([path.name for path in dirs])
    checked = [_check(path, request.agent, think) for path in dirs]
    concurrency = 1 if request.env == UNSAFE else request.concurrency
    sound = [path for path, problems in zip(dirs, checked, strict=True) if not problems]
    broken = [
        BrokenTask(
            trial_id=trial_id(slugs[path.name], 0), name=path.name, dir=path, problems=problems
        )
        for path, problems in zip(dirs, checked, strict=True)
        if problems
    ]
    specs = tuple(
        TrialSpec(
            trial_id=trial_id(slugs[path.name], sample),
            task_dir=path,
            sample=sample,
            agent=request.agent,
            out_dir=request.out_dir,
            env=request.env,
            load=request.load(sample),
            agent_args=agent_args,
            env_args=env_args,
        )
        for path, sample in spread(sound, concurrency, request.repeat)
    )
    return Plan(
        source=request.source,
        specs=specs,
        broken=tuple(broken),
        agent=request.agent,
        env=request.env,
        concurrency=concurrency,
        out_dir=request.out_dir,
        run_token=request.run_token,
        seed=request.seed,
        max_fault_rate=request.max_fault_rate,
        starts_per_s=starts_of(request.starts_per_s),
        turns=request.turns,
        gated=request.gated,
    )


def _agent_args(request: Request) -> dict[str, Any]:
    takes = ":" in request.agent or request.agent == policy.NAME
    args = {**request.model_args, **args_of("--agent-arg", request.agent_args, takes)}
    if request.agent == policy.NAME:
        from envkit.preflight.engine import check_args  # what it imports, no other agent needs

        check_args(args)
    return args


def spread[T](tasks: Sequence[T], concurrency: int, repeat: int | None) -> list[tuple[T, int]]:
    """(task, sample) pairs, all tasks' first samples before any second one.

    That order makes every task live in the first wave, and shows a broken one early.
    """
    if not tasks:
        return []
    trials = repeat * len(tasks) if repeat else max(concurrency, len(tasks))
    return [(tasks[n % len(tasks)], n // len(tasks)) for n in range(trials)]


def known(option: str, value: str, names: tuple[str, ...]) -> None:
    """Refuses a value that is neither one of ours nor an import path of a module that exists."""
    if value in names:
        return
    if not IMPORT_PATH.fullmatch(value):
        raise HarnessError(f"{option} {value}: use {', '.join(names)} or module:Class")
    module = value.partition(":")[0]
    if not _is_there(module):
        raise HarnessError(
            f"{option} {value}: there is no module {module}; install it, or name its directory "
            "in PYTHONPATH"
        )


def _is_there(module: str) -> bool:
    """Whether a module can be found; of a dotted one, its parents are imported."""
    try:
        return find_spec(module) is not None
    except ImportError:
        return False


def problems_of(path: Path, agent: str) -> tuple[str, ...]:
    """Why this agent cannot run a task; empty for a sound one."""
    return _check(path, agent, think_of("", agent))


def _check(path: Path, agent: str, think: Think) -> tuple[str, ...]:
    """Why a task cannot be run by this agent; empty for a sound one."""
    try:
        errors = [_line(problem) for problem in lint(path) if problem.severity is Severity.ERROR]
        task = load_task(path) if not errors else None
        return tuple(errors if task is None else [*_unfit(task, agent), *no_times(task, think)])
    except Exception as error:  # a task may break a check in any way; the run goes on without it
        return (f"{type(error).__name__}: {error}",)


def _line(problem: Problem) -> str:
    return f"{problem.where}: {problem.message}; {problem.fix}"


def _unfit(task: Task, agent: str) -> list[str]:
    if agent == "replay" and task.calls_path is None:
        return ["solution/calls.jsonl is missing; record the oracle's calls or use --agent oracle"]
    if agent == "oracle" and not task.has_oracle:
        return ["solution/solve.sh is missing; write it or use --agent replay"]
    return []
