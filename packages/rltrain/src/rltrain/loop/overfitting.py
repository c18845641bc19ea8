# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""The overfit gate, run: tasks are chosen by how their rewards vary, and trained on all at once.

Contract: synchronous, every task in every step, nothing older than the weights that are trained.
The run is one as any other, in its own directory; the evaluation that tasks are chosen by is one
beside it, unless there is one already.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from envkit.trajectory.errors import TrajectoryError
from rltrain.batch.source import opened
from rltrain.evaluate.config import EvaluateConfig
from rltrain.evaluate.scores import Scores
from rltrain.evaluate.variance import Chosen, by_variance
from rltrain.loop.evaluation import evaluations_of
from rltrain.loop.origin import weights
from rltrain.loop.overfit import Verdict, judged, keep
from rltrain.loop.prepare_live import PreparedLive, prepared_live
from rltrain.loop.run import run_live
from rltrain.loop.settings import Settings
from rltrain.loop.types import LiveTold
from rltrain.refused import Refused
from rltrain.track.metrics import METRICS, read_metrics

EVALUATION = "evaluation"
"""Directory of the run that tasks are chosen by, under the gate's."""


def overfit(
    settings: Settings, root: Path, evaluated: Path | None, told: LiveTold
) -> Verdict | None:
    """Run the gate; None where somebody ended it.

    Raises:
        Refused: it cannot be run, or no task can be learned from.
    """
    settings = synchronous(settings)
    first = prepared_live(settings, root)
    scores = stored_scores(evaluated) if evaluated else _evaluated(first, told)
    if scores is None:
        return None
    chosen = chosen_of(scores, settings)
    told.line(f"{len(chosen.tasks)} tasks vary in reward, {len(chosen.constant)} do not")
    prompts = replace(settings.batch, prompts=len(chosen.tasks))
    asked = prepared_live(replace(settings, batch=prompts), root, chosen.tasks)
    ended = run_live(asked, told)
    if ended.interrupted:
        return None
    verdict = _verdict(asked, settings, chosen)
    keep(root, verdict)
    return verdict


def synchronous(settings: Settings) -> Settings:
    """The settings of the gate: nothing older than what is trained, and an evaluation around it."""
    if settings.rollout is None:
        raise Refused("nothing to train on: name a directory of tasks by --tasks (rollout.tasks)")
    gate = settings.gates.overfit
    return replace(
        settings,
        buffer=replace(settings.buffer, staleness=0, head_start=0),
        batch=replace(settings.batch, samples=gate.samples),
        evaluate=EvaluateConfig(
            context_tokens=settings.rollout.context_tokens, passes=gate.samples, every_steps=0
        ),
    )


def chosen_of(scores: Scores, settings: Settings) -> Chosen:
    """Tasks to train on.

    Raises:
        Refused: fewer than two of them vary.
    """
    chosen = by_variance(scores, settings.gates.overfit.tasks)
    if len(chosen.tasks) < 2:
        raise Refused(
            f"of {len(scores.rewards)} tasks {len(chosen.constant)} earned one and the same reward"
            " each, so nothing can be learned from them: take easier or harder ones"
        )
    return chosen


def stored_scores(place: Path) -> Scores:
    """Rewards by task of trajectories that were recorded before.

    Raises:
        Refused: there are none.
    """
    rewards: dict[str, list[float | None]] = {}
    for row in opened(place).scan():
        if not isinstance(row, TrajectoryError):
            valid = row.outcome.reward_valid
            reward = row.outcome.reward if valid else None
            rewards.setdefault(row.identity.task, []).append(reward)
    return Scores(rewards=rewards)


def _evaluated(first: PreparedLive, told: LiveTold) -> Scores | None:
    """Of a run of no steps, which only evaluates."""
    root = first.work.root / EVALUATION
    if not (found := evaluations_of(root)):
        work = replace(first.work, root=root, steps=0)
        ended = run_live(replace(first, work=work), told)
        if ended.interrupted:
            return None
        found = evaluations_of(root)
    return found[0].scores


def _verdict(asked: PreparedLive, settings: Settings, chosen: Chosen) -> Verdict:
    root = asked.work.root
    found = evaluations_of(root)
    steps = read_metrics(root / METRICS).steps
    verdict = judged(found[0].scores, found[-1].scores, steps, settings.gates, len(chosen.constant))
    return verdict.model_copy(
        update={"policy": weights(asked.work.settings), "data": asked.work.digest}
    )
