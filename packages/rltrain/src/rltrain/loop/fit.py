# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Training on recorded trajectories: `fit` reads as the story of a run.

Contract: a step is a function of the settings, the data, the weights before it and its number; a
run that was killed anywhere and is gone on with ends in the same weights, to the bit where it is
deterministic. All ranks call it together; only rank 0 writes numbers and speaks.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from rltrain.batch.schedule import Schedule
from rltrain.loop.checkpoint import STATE, Checkpoints
from rltrain.loop.directory import CHECKPOINTS
from rltrain.loop.learner import Learner
from rltrain.loop.numbers import Numbers
from rltrain.loop.seconds import Seconds
from rltrain.loop.stopping import stop_wished
from rltrain.loop.types import Ended, Told, Work, expect_ahead
from rltrain.policy.ranks import any_rank


def fit(work: Work, told: Told) -> Ended:
    """Train until the steps are over or somebody wants an end.

    Raises:
        Refused: the policy cannot be loaded or packed, or no checkpoint that is there is whole.
    """
    run = Fit(work, told)
    step = began = run.take_up()
    expect_ahead(work.stop_after, step)
    with ExitStack() as stack:
        stopping = stack.enter_context(stop_wished(told.line))
        numbers = stack.enter_context(run.numbers(after=began))
        last: dict[str, float] = {}
        stopped = False
        while step < len(run.schedule) and not stopped:
            last = run.step(step)
            step += 1
            numbers.log(step, last)
            told.step(step, len(run.schedule), last)
            stopped = any_rank(stopping()) or step == work.stop_after
            if stopped or run.due(step):
                run.keep(step, numbers)
    return Ended(
        step=step,
        steps=len(run.schedule),
        resumed_at=began,
        interrupted=stopped and step < len(run.schedule),
        checkpoint=run.kept,
        last=last,
    )


class Fit:
    """One run on this rank."""

    def __init__(self, work: Work, told: Told) -> None:
        settings = work.settings
        self._work, self._told = work, told
        self._seconds = Seconds()
        self._learner = Learner(settings, work.cost, self._seconds)
        self._backend = self._learner.backend
        self._version = work.recorded.version  # the policy is taken for the newest that sampled
        self._checkpoints = Checkpoints(
            work.root / CHECKPOINTS,
            data=work.recorded.digest,
            keep=settings.checkpoint.keep,
            told=told.line,
        )
        self.kept: Path | None = None
        self.schedule = Schedule(
            groups=work.groups,
            prompts=settings.batch.prompts,
            seed=settings.run.seed,
            epochs=settings.run.epochs,
            steps=settings.run.steps,
            order=settings.batch.order,
        )

    def take_up(self) -> int:
        """Be where the last whole checkpoint left the run; how many steps that is."""
        kept = self._checkpoints.newest()
        if kept is None:
            return 0
        self._backend.restore(kept.directory / STATE)
        self.kept = kept.directory
        return kept.commit.step

    def numbers(self, after: int) -> Numbers:
        """Where those of the steps after this one go."""
        if self._backend.rank != 0:
            return Numbers()
        return Numbers.after(after, self._work.root, self._work.settings, self._told.line)

    def step(self, step: int) -> dict[str, float]:
        """Take the step of this number, from 0; what it told."""
        work = self._work
        with self._seconds.part("read"):
            samples = work.recorded.samples(self.schedule.batch(step))
        numbers = self._learner.learn(step, samples, self._version + step)
        return {**numbers, **self._seconds.told()}

    def due(self, step: int) -> bool:
        """Whether there is a checkpoint after so many steps."""
        return step % self._work.settings.checkpoint.every == 0 or step == len(self.schedule)

    def keep(self, step: int, numbers: Numbers) -> None:
        """Leave a checkpoint; the numbers of the steps before it are on the disk before it is."""
        with self._seconds.part("checkpoint"):
            numbers.sync()
            self.kept = self._checkpoints.save(self._backend, step)
