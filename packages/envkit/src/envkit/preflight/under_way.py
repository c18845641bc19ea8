# SPDX-License-Identifier: Apache-2.0
"""Specs on their way to a record, and what their tasks share."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from envkit.deadline import Budgets
from envkit.fault import Fault, Phase, classify
from envkit.preflight.attempt import TaskFacts, task_facts
from envkit.preflight.types import RunOptions, TrialSpec, TrialStarted
from envkit.sandbox.prepare import Prepared, prepare
from envkit.trial import policy
from envkit.trial.record import Attempt, TrialRecord, decided_by
from envkit.trial.request import TrialRequest, attempt_name

type Shared = tuple[Prepared | Fault | None, TaskFacts]
"""By the trials of one task."""


@dataclass(slots=True)
class Trial:
    """One spec on its way to a record."""

    spec: TrialSpec
    prepared: Prepared | Fault | None
    """None where nothing is to be prepared here; a fault where it could not be."""
    facts: TaskFacts
    earlier: tuple[Attempt, ...] = ()
    """Attempts that had ended when an earlier process of this run was killed."""
    attempts: list[Attempt] = field(init=False)
    began: float = 0.0
    cancelled: bool = False
    """Nobody wants to know any more what it comes to."""

    def __post_init__(self) -> None:
        self.attempts = [*self.earlier]

    @property
    def started(self) -> TrialStarted:
        """What is said when it begins."""
        spec = self.spec
        return TrialStarted(trial_id=spec.trial_id, task=spec.task_dir.name, sample=spec.sample)

    def request(self, environment: str, budgets: Budgets, *, unsafe: bool) -> TrialRequest:
        """What its next attempt asks of the process that runs it."""
        spec = self.spec
        return TrialRequest(
            trial_id=spec.trial_id,
            attempt=len(self.attempts) + 1,
            task_dir=spec.task_dir,
            trials_dir=spec.out_dir,
            agent=spec.agent,
            environment=environment,
            budgets=budgets,
            unsafe=unsafe,
            load=spec.load,
            expected_tools=self.facts.expected_tools,
            agent_args=spec.agent_args,
            env_args=spec.env_args,
        )

    @property
    def limit_s(self) -> float:
        """Seconds after which its process is killed."""
        spec, facts = self.spec, self.facts
        model = spec.agent == policy.NAME
        agent_s = policy.wall_s(spec.agent_args, facts.agent_s) if model else None
        return facts.limit_with(spec.load, agent_s)

    def record(self) -> TrialRecord:
        """What it came to; its place is its last attempt's directory."""
        spec, last = self.spec, self.attempts[-1]
        return TrialRecord(
            trial_id=spec.trial_id,
            task=spec.task_dir.name,
            sample=spec.sample,
            agent=spec.agent,
            attempts=tuple(self.attempts),
            verdict="graded" if last.reward is not None else "no_verdict",
            reward=last.reward,
            reward_valid=last.reward_valid,
            fault=decided_by(last.faults),
            trial_dir=spec.out_dir / attempt_name(spec.trial_id, last.number),
            seconds=self._seconds(),
        )

    def _seconds(self) -> float:
        """Of all attempts: by the clock, those of a killed process by their phases."""
        here = time.monotonic() - self.began if self.began else 0.0
        return here + sum(sum(attempt.phases.values()) for attempt in self.earlier)


def prepare_all(specs: Sequence[TrialSpec], options: RunOptions, *, local: bool) -> list[Trial]:
    """Build roots and worlds once a task; one that cannot be prepared fails in its trials."""
    shared: dict[Path, Shared] = {}
    for spec in specs:
        if spec.task_dir not in shared:
            shared[spec.task_dir] = shared_by(spec.task_dir, options.budgets, local=local)
    return [
        Trial(spec, *shared[spec.task_dir], options.earlier.get(spec.trial_id, ()))
        for spec in specs
    ]


def shared_by(task_dir: Path, budgets: Budgets, *, local: bool) -> Shared:
    """What the trials of one task share; that it cannot be prepared is a fault of theirs."""
    return (_prepared(task_dir) if local else None), task_facts(task_dir, budgets)


def preloads(specs: Sequence[TrialSpec]) -> list[tuple[str, dict[str, Any]]]:
    """What the process that forks the trials is to load first; each tokenizer once."""
    wanted = [policy.preload_of(s.agent_args) for s in specs if s.agent == policy.NAME]
    unique = {orjson.dumps(args, option=orjson.OPT_SORT_KEYS): args for args in wanted}
    return [(policy.PRELOAD, args) for args in unique.values()]


def _prepared(task_dir: Path) -> Prepared | Fault:
    try:
        return prepare(task_dir)
    except Exception as error:  # the boundary: it is the fault of this task's trials
        return classify(error, Phase.START)


def roots_of(trials: Sequence[Trial]) -> list[Path]:
    """Whose interpreters are warmed before the first trial starts."""
    prepared = [trial.prepared for trial in trials]
    return sorted({p.root for p in prepared if isinstance(p, Prepared)})


def worth_another(attempt: Attempt) -> Fault | None:
    """Why to run it again; a rewarded trial never is.

    One fault that may pass is enough: what seems final beside it may be its consequence.
    """
    if attempt.reward_valid:
        return None
    passing = (f for f in attempt.faults if f.policy.retry and not f.policy.reward_valid)
    return next(passing, None)
