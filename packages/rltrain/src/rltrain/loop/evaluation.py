# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Evaluations of a live run: trials as in training, without a nudge, on weights that stand.

Contract: no weights change while one is under way. A trial that a fault took is run once more; what
has no valid reward then counts for what it is, a trial without one. Each evaluation is a line of
`EVALUATIONS` once it is over, and none of its trials is ever trained on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, TypeAdapter

from envkit.crew.types import CrewEvent, Ended, Refused, TrialOrder
from envkit.durable import write_durably
from rltrain.evaluate.scores import Scores, difference
from rltrain.rollout.crews import Crews, Lost
from rltrain.rollout.pool import Pool
from rltrain.sync.version import WeightVersion

EVALUATIONS: Final = "evaluations.json"
"""In a run's directory."""
TRIES: Final = 2


class Evaluated(BaseModel):
    """One of them, as it is kept."""

    model_config = ConfigDict(frozen=True)
    lineage: int
    step: int
    seconds: float
    rewards: dict[str, list[float | None]]
    """By task; null is a trial without a valid one."""
    sampled_tokens: int

    @property
    def scores(self) -> Scores:
        """The rewards."""
        return Scores(rewards=self.rewards)


_ALL: Final = TypeAdapter(tuple[Evaluated, ...])


def evaluations_of(root: Path) -> tuple[Evaluated, ...]:
    """Those of a run so far, in their order."""
    file = root / EVALUATIONS
    return _ALL.validate_json(file.read_bytes()) if file.is_file() else ()


def keep(root: Path, found: Evaluated) -> None:
    """Leave one more; one of the same weights is replaced."""
    others = [
        each
        for each in evaluations_of(root)
        if (each.lineage, each.step) != (found.lineage, found.step)
    ]
    write_durably(root / EVALUATIONS, _ALL.dump_json((*others, found), indent=1))


def best(found: Sequence[Evaluated]) -> Evaluated | None:
    """The one with the highest mean reward, invalid trials counted as 0; of equals the first."""
    return max(found, key=lambda each: each.scores.mean("as_zero"), default=None)


def line_of(found: Evaluated, first: Evaluated | None = None) -> str:
    """One evaluation for a person; beside it how much it rose since the first one."""
    scores = found.scores
    shown = (
        f"evaluated after {found.step} steps: reward {scores.mean('as_zero'):.3f}"
        f" ({scores.mean('excluded'):.3f} without the {scores.invalid_share:.0%} invalid),"
        f" {scores.trials} trials, {found.seconds:.0f} s"
    )
    if first is None or first == found:
        return shown
    rises = (difference(first.scores, scores, counting) for counting in ("as_zero", "excluded"))
    whole, valid = (f"{r.mean:+.3f} [{r.low:+.3f}, {r.high:+.3f}]" for r in rises)
    return f"{shown}; since step {first.step} {whole}, without invalid {valid}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """What is run for one evaluation."""

    tasks: Sequence[str]
    passes: int
    version: WeightVersion
    settings: dict[str, Any]
    """Of the agent, where they differ from training's."""


class Evaluations:
    """Runs them."""

    def __init__(self, pool: Pool, crews: Crews) -> None:
        self._pool, self._crews = pool, crews
        self._waiting: dict[str, asyncio.Future[Ended | None]] = {}

    def heard(self, said: CrewEvent | Lost) -> None:
        """Something became of a trial."""
        future = self._waiting.get(getattr(said, "trial", ""))
        if future is None or future.done():
            return
        if isinstance(said, Ended):
            future.set_result(said)
        elif isinstance(said, (Lost, Refused)):
            future.set_result(None)

    async def run(self, trials: Trials) -> tuple[dict[str, list[float | None]], int]:
        """Rewards by task, and how many tokens were sampled for them."""
        names = [(task, number) for task in trials.tasks for number in range(trials.passes)]
        ended = await asyncio.gather(*(self._one(trials, task, n) for task, n in names))
        rewards: dict[str, list[float | None]] = {task: [] for task in trials.tasks}
        for (task, _), (reward, _tokens) in zip(names, ended, strict=True):
            rewards[task].append(reward)
        return rewards, sum(tokens for _, tokens in ended)

    async def _one(self, trials: Trials, task: str, number: int) -> tuple[float | None, int]:
        tokens = 0
        for attempt in range(TRIES):
            name = f"eval-{trials.version.number:09}-{attempt}-{task}-{number:02}"
            ended = await self._trial(name, trials, task, number)
            if ended is not None:
                tokens += ended.sampled_tokens
                if ended.outcome in ("valid", "own"):
                    return ended.reward, tokens
        return None, tokens

    async def _trial(self, name: str, trials: Trials, task: str, number: int) -> Ended | None:
        future: asyncio.Future[Ended | None] = asyncio.get_running_loop().create_future()
        self._waiting[name] = future
        try:
            engine = await self._pool.route(name)
            await self._crews.begin(
                TrialOrder(
                    trial_id=name,
                    group_id=f"eval-{trials.version.number:09}-{task}",
                    sample=number,
                    task=task,
                    engine=engine.url,
                    settings=trials.settings,
                )
            )
            return await future
        finally:
            del self._waiting[name]
            self._pool.release(name)
