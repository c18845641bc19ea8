# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""When a live run evaluates its weights, and what it says of that."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from rltrain.evaluate.scores import Scores
from rltrain.loop.agent import evaluated_as
from rltrain.loop.evaluation import (
    Evaluated,
    Evaluations,
    Trials,
    best,
    evaluations_of,
    keep,
    line_of,
)
from rltrain.loop.lineage import Lineages
from rltrain.loop.parts import Parts
from rltrain.loop.prompts import task_names
from rltrain.loop.types import LiveWork
from rltrain.sync.version import WeightVersion


class Evaluating:
    """Evaluations of a run: before its first step, every so many, and after the last."""

    def __init__(self, work: LiveWork, parts: Parts, lineages: Lineages) -> None:
        self._work, self._lineages = work, lineages
        self._evaluations = Evaluations(parts.pool, parts.crews)
        self.heard = self._evaluations.heard
        held_out = work.held_out
        self._tasks = work.names if held_out is None else task_names(held_out)

    @property
    def best_step(self) -> int | None:
        """Step of the weights that earned most, of those that these descend from; None where none
        were evaluated that a step was taken to."""
        return best_step(self._work.root, self._lineages)

    def due(self, step: int, steps: int) -> bool:
        """Whether the weights after so many steps are evaluated."""
        config = self._work.settings.evaluate
        return config is not None and (step in (0, steps) or _every(step, config.every_steps))

    async def where_due(
        self, step: int, steps: int, say: Callable[[str], None]
    ) -> dict[str, float]:
        """Evaluate the weights after so many steps, if that is due and not done; its numbers."""
        config = self._work.settings.evaluate
        if config is None or not self.due(step, steps):
            return {}
        root, before = self._work.root, evaluations_of(self._work.root)
        if any(self._lineages.step_of(_number(each)) == step == each.step for each in before):
            return {}
        began = time.monotonic()
        trials = Trials(
            tasks=self._tasks,
            passes=config.passes,
            version=self._lineages.version(step),
            settings=evaluated_as(self._work, config),
        )
        say(f"evaluating {len(self._tasks)} tasks x {config.passes} after {step} steps")
        rewards, tokens = await self._evaluations.run(trials)
        found = Evaluated(
            lineage=self._lineages.now,
            step=step,
            seconds=time.monotonic() - began,
            rewards=rewards,
            sampled_tokens=tokens,
        )
        keep(root, found)
        say(line_of(found, before[0] if before else None))
        return _numbers(found.scores)


def best_step(root: Path, lineages: Lineages) -> int | None:
    """Of a run that stands in these lineages; see `Evaluating.best_step`."""
    mine = [each for each in evaluations_of(root) if lineages.is_ancestor(_number(each))]
    found = best([each for each in mine if each.step])
    return found.step if found else None


def _every(step: int, every: int) -> bool:
    return every > 0 and step % every == 0


def _number(each: Evaluated) -> int:
    return WeightVersion(lineage=each.lineage, step=each.step).number


def _numbers(scores: Scores) -> dict[str, float]:
    return {
        "evaluate/reward": scores.mean("as_zero"),
        "evaluate/reward_of_valid": scores.mean("excluded"),
        "evaluate/invalid_share": scores.invalid_share,
    }
