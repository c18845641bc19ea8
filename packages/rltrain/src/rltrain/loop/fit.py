# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Training on recorded trajectories: `fit` reads as the story of a run.

Contract: a step is a function of the settings, the data, the weights before it and its number; a
run that was killed anywhere and is gone on with ends in the same weights, to the bit where it is
deterministic. All ranks call it together; only rank 0 writes numbers and speaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from rltrain.batch.cost import Cost
from rltrain.batch.micro import MicroBatch, cut
from rltrain.batch.schedule import Schedule
from rltrain.batch.source import Group, Recorded
from rltrain.batch.stamp import Stamped, stamp
from rltrain.loop.checkpoint import Checkpoints
from rltrain.loop.directory import CHECKPOINTS
from rltrain.loop.figures import figures
from rltrain.loop.seconds import Seconds
from rltrain.loop.settings import Settings
from rltrain.loop.stopping import stop_wished
from rltrain.objective.loss.clipped import Tis
from rltrain.policy.fsdp.backend import FsdpBackend
from rltrain.policy.ranks import any_rank, seed_step
from rltrain.policy.types import Backend, Goal
from rltrain.track.boards import Boards, open_boards
from rltrain.track.metrics import METRICS, Metrics, cut_after


class Told(Protocol):
    """Who hears of a run while it goes on."""

    def line(self, text: str) -> None:
        """Something that a person should know."""
        ...

    def step(self, step: int, steps: int, numbers: dict[str, float]) -> None:
        """A step was taken."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended."""

    step: int
    """Steps that were taken, those before a resumption among them."""
    steps: int
    """Steps there are."""
    resumed_at: int
    interrupted: bool
    checkpoint: Path | None
    last: dict[str, float]
    """Numbers of the last step that was taken now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is trained on what, and where."""

    settings: Settings
    recorded: Recorded
    groups: Sequence[Group]
    """That steps are taken on."""
    cost: Cost
    root: Path
    """The run's directory."""
    remarks: tuple[str, ...] = ()
    """What a person should know of the data before it is trained on."""


def fit(work: Work, told: Told) -> Ended:
    """Train until the steps are over or somebody wants an end.

    Raises:
        Refused: the policy cannot be loaded or packed, or no checkpoint that is there is whole.
    """
    fit = Fit(work, told)
    step = began = fit.take_up()
    with ExitStack() as stack:
        stopping = stack.enter_context(stop_wished(told.line))
        numbers = stack.enter_context(fit.numbers(after=began))
        last: dict[str, float] = {}
        stopped = False
        while step < len(fit.schedule) and not stopped:
            last = fit.step(step)
            step += 1
            numbers.log(step, last)
            told.step(step, len(fit.schedule), last)
            stopped = any_rank(stopping())
            if stopped or fit.due(step):
                fit.keep(step, numbers)
    return Ended(
        step=step,
        steps=len(fit.schedule),
        resumed_at=began,
        interrupted=stopped and step < len(fit.schedule),
        checkpoint=fit.kept,
        last=last,
    )


class Numbers:
    """Where the numbers of steps go; nowhere on ranks but the first."""

    def __init__(self, metrics: Metrics | None, boards: Boards | None) -> None:
        self._metrics, self._boards = metrics, boards

    def log(self, step: int, numbers: dict[str, float]) -> None:
        """Those of one step."""
        if self._metrics is not None:
            self._metrics.log(step, numbers)
        if self._boards is not None:
            self._boards.log(step, numbers)

    def sync(self) -> None:
        """Put them on the disk."""
        if self._metrics is not None:
            self._metrics.sync()

    def __enter__(self) -> Numbers:
        return self

    def __exit__(self, *raised: object) -> None:
        for each in (self._metrics, self._boards):
            if each is not None:
                each.close()


class Fit:
    """One run on this rank."""

    def __init__(self, work: Work, told: Told) -> None:
        settings = work.settings
        self._work, self._told = work, told
        self._seconds = Seconds()
        self._goal = Goal(loss=settings.objective.loss, terms=settings.objective.terms)
        self._backend: Backend = FsdpBackend(settings.policy, settings.optimizer)
        self._reference = _reference(settings)
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
        self._backend.restore(kept.directory / "state")
        self.kept = kept.directory
        return kept.commit.step

    def numbers(self, after: int) -> Numbers:
        """Numbers of the steps after this one; those of steps that are taken again are cut off."""
        if self._backend.rank != 0:
            return Numbers(None, None)
        root = self._work.root
        cut_after(root / METRICS, after)
        boards = open_boards(root, self._told.line, after=after or None)
        return Numbers(Metrics(root / METRICS), boards)

    def step(self, step: int) -> dict[str, float]:
        """Take the step of this number, from 0; what it told."""
        work, part = self._work, self._seconds.part
        seed_step(work.settings.run.seed, step, self._backend.rank)
        with part("read"):
            samples = work.recorded.samples(self.schedule.batch(step))
        with part("stamp"):
            stamped = stamp(work.settings.objective, samples)
            mine = self._cut(stamped)
        with part("score"):
            mine = [self._scored(each) for each in mine]
        with part("step"):
            stepped = self._backend.step(mine, self._goal) if mine else None
        return {**figures(stamped, stepped, self._version + step), **self._seconds.told()}

    def due(self, step: int) -> bool:
        """Whether there is a checkpoint after so many steps."""
        return step % self._work.settings.checkpoint.every == 0 or step == len(self.schedule)

    def keep(self, step: int, numbers: Numbers) -> None:
        """Leave a checkpoint; the numbers of the steps before it are on the disk before it is."""
        with self._seconds.part("checkpoint"):
            numbers.sync()
            self.kept = self._checkpoints.save(self._backend, step)

    def _cut(self, stamped: Stamped) -> list[MicroBatch]:
        cap = self._work.settings.batch.micro_batch_tokens
        parts = cut(stamped, self._work.cost, cap=cap, ranks=self._backend.ranks)
        return parts[self._backend.rank]

    def _scored(self, batch: MicroBatch) -> MicroBatch:
        """With the log-probs of other policies that the goal asks for."""
        more: dict[str, Any] = {}
        if self._reference is not None:
            more["reference"] = self._reference.score(batch).logp
        if isinstance(self._goal.loss, Tis):
            more["old"] = self._backend.score(batch).logp
        return replace(batch, **more)


def _reference(settings: Settings) -> Backend | None:
    if settings.objective.terms.kl <= 0:
        return None
    policy = replace(settings.policy, path=settings.policy.reference, lora=None)
    return FsdpBackend(policy, settings.optimizer)
