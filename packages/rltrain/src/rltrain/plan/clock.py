# SPDX-License-Identifier: Apache-2.0
"""A run through the real scheduler, at speeds that depend on what is under way.

Contract: the same setting gives the same run. Every trial under way goes on at one pace, that of
the mean trial under the load of the moment; how long each takes relative to others is its own, at
a reference load. In a sync all of them stand still. Figures are of the steps from ``first`` on.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from rltrain.buffer.simulate import Clock, Setting, Step, group_of
from rltrain.buffer.types import Admit, Batch, Decision, Offered, SampleId, TrainerFree
from rltrain.plan.speed import Load, Speed
from rltrain.plan.trials import Trial
from rltrain.refused import Refused

PILOT: Final = 6
"""Steps of a run by which the reference load of the one that counts is found."""
EARLY: Final = 10
"""Steps that are taken on what is finished first."""
MOST_ROUNDS: Final = 8
"""Times that all prompts are offered, which are enough for all steps where none is dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Went:
    """How a run went, from one step to another."""

    steps: int
    steps_per_h: float
    samples_per_h: float
    running: float
    """Trials under way, in the mean."""
    sampling: float
    """Of those, that engines work for at such a load."""
    trial_s: float
    """Of the mean trial at such a load."""
    tokens_per_s: float
    """Sampled, by all engines."""
    trainer_s: float
    """Of a step, in the mean."""
    training: float
    """Share of the time in which the trainer works."""
    waiting: float
    """In which it waits for a batch; the rest is syncs."""
    staleness: float
    """Of a sample, in the mean."""
    stalest: int
    bias: float
    """Of the first ten steps: how much longer their mean sample is than those of the prompts that
    were offered first."""
    lost: float
    """Share of the tokens that were sampled and not trained on."""
    room: float
    """Mean of the ceiling that staleness sets: (S + 1) x prompts x samples, less what is finished
    and not yet trained on."""
    by_slots: float
    """Share of the time in which slots bound, and not staleness."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """Sums up to a moment."""

    at_s: float
    busy: float
    training: float
    waiting: float
    held: float
    slots: float
    trained: int


class PlanClock(Clock):
    """`Clock`, with a pace."""

    def __init__(
        self, setting: Setting, trials: Sequence[Sequence[Trial]], speed: Speed, usual: float
    ) -> None:
        super().__init__(setting, [[each.tokens for each in group] for group in trials])
        self.made = trials
        self.speed = speed
        self.usual = speed.at(max(1, round(usual)), training=False)
        self.work_s = 0.0
        self.at_work = False
        self.progress_s = 0.0
        self.training_s = 0.0
        self.waiting_s = 0.0
        self.held = 0
        self.held_s = 0.0
        self.marks: list[_Mark] = []
        self.offered = 0
        self.rounds = 0

    # --- time -------------------------------------------------------------------------------------

    def load(self) -> Load:
        return self.speed.at(len(self.trials), self.at_work)

    def pace(self) -> float:
        """Of the trials, against the reference load."""
        if self.pause_began_s is not None:
            return 0.0
        return self.usual.trial_s / self.load().trial_s

    def engine_s(self) -> float:
        return self.progress_s

    def next_end_s(self) -> float:
        if super().next_end_s() == math.inf:
            return math.inf
        return self.now_s + max(0.0, self.ends[0][0] - self.progress_s) / self.pace()

    def next_trainer_s(self) -> float:
        if self.at_work:
            return self.now_s + self.work_s * self.load().crowd.slow
        return super().next_trainer_s()

    def to(self, at_s: float) -> None:
        passed = max(0.0, at_s - self.now_s)
        self.progress_s += passed * self.pace()
        if self.at_work:
            self.work_s = max(0.0, self.work_s - passed / self.load().crowd.slow)
            self.training_s += passed
        elif self.pause_began_s is None:
            self.waiting_s += passed
        self.held_s += passed * self.held
        super().to(at_s)

    def start(self, sample: SampleId) -> None:
        """Faults are a sample's own, so that splits are compared on the same ones."""
        name = f"{self.setting.seed}/{sample.group}/{sample.place}/{sample.attempt}"
        self.source = random.Random(name)
        super().start(sample)

    def trial_s(self, sample: SampleId, tokens: int) -> float:
        trial = self.made[group_of(sample)][sample.place]
        return self.speed.trial_s(trial, self.usual)

    def trainer_s(self, step: Step) -> float:
        self.work_s, self.at_work = self.speed.trainer.step_s(step.tokens), True
        return self.work_s

    # --- what is counted --------------------------------------------------------------------------

    def end(self) -> None:
        before = self.scheduler.ledger.tokens.count
        super().end()
        self.held += self.scheduler.ledger.tokens.count - before

    def step_on(self) -> None:
        at_s = self.next_trainer_s()
        if self.at_work:
            self.to(at_s)
            self.at_work = False
            self.trainer[0] = (self.now_s, self.trainer[0][1])
            self.held -= self.scheduler.training
        super().step_on()

    def batch(self, batch: Batch) -> None:
        super().batch(batch)
        slots = self.scheduler.ledger.bound_s.get("slots", 0.0)
        self.marks.append(
            _Mark(
                at_s=self.now_s,
                busy=self.busy_slot_s,
                training=self.training_s,
                waiting=self.waiting_s,
                held=self.held_s,
                slots=slots,
                trained=sum(len(each.tokens) for each in self.steps[:-1]),
            )
        )

    def do(self, decision: Decision) -> None:
        self.offered -= isinstance(decision, Admit)
        super().do(decision)

    def offer(self) -> None:
        """All groups, once more.

        Raises:
            Refused: it was done so often that nothing can come of it.
        """
        setting, whole = self.setting, self.speed.at(self.setting.slots, training=False)
        if self.rounds == MOST_ROUNDS:
            raise Refused(
                f"{len(self.steps)} steps are taken on {self.rounds} times as many prompts as are"
                f" wanted: with {setting.slots} trials at once each takes {whole.trial_s:,.0f} s,"
                f" and buffer.bound_wait_s is {setting.buffer.bound_wait_s:g}; raise that, or set"
                " faults and speeds with --assume"
            )
        for number in range(len(self.lengths)):
            self.offered += 1
            self.tell(Offered(group=f"{number}/{self.rounds}"))
        self.rounds += 1

    def until(self, steps: int) -> None:
        """Run until so many batches were taken, on as many prompts as that takes."""
        self.offer()
        self.tell(TrainerFree())
        while len(self.steps) < steps:
            if self.offered < self.setting.prompts:
                self.offer()
            self.advance()


def went(
    setting: Setting, trials: Sequence[Sequence[Trial]], speed: Speed, first: int, last: int
) -> Went:
    """Simulate batches up to ``last`` and tell of those from ``first`` on.

    Raises:
        Refused: hardly any trial ends before it is given up.
    """
    pilot = PlanClock(setting, trials, speed, setting.slots / 2)
    short = min(last, first + PILOT)
    pilot.until(short + 1)
    clock = PlanClock(setting, trials, speed, _running(pilot, first, short))
    clock.until(last + 1)
    return _told(clock, first, last)


def _running(clock: PlanClock, first: int, last: int) -> float:
    begin, end = clock.marks[first], clock.marks[last]
    return (end.busy - begin.busy) / (end.at_s - begin.at_s)


def _told(clock: PlanClock, first: int, last: int) -> Went:
    begin, end = clock.marks[first], clock.marks[last]
    seconds = end.at_s - begin.at_s
    steps = clock.steps[first:last]
    ages = [age for step in steps for age in step.staleness]
    samples = end.trained - begin.trained
    running = _running(clock, first, last)
    load = clock.speed.at(max(1, round(running)), training=end.training > begin.training)
    whole = (clock.setting.buffer.staleness + 1) * clock.setting.prompts * clock.setting.samples
    early = [fmean(step.tokens) for step in clock.steps[:EARLY]]
    offered = clock.lengths[: EARLY * clock.setting.prompts]
    population = fmean(each for group in offered for each in group)
    lost = sum(clock.scheduler.ledger.tokens_lost.values())
    return Went(
        steps=len(steps),
        steps_per_h=3600 * len(steps) / seconds,
        samples_per_h=3600 * samples / seconds,
        running=running,
        sampling=load.sampling,
        trial_s=load.trial_s,
        tokens_per_s=samples * clock.speed.sampled / seconds,
        trainer_s=fmean(clock.speed.trainer.step_s(step.tokens) for step in steps),
        training=(end.training - begin.training) / seconds,
        waiting=(end.waiting - begin.waiting) / seconds,
        staleness=fmean(ages),
        stalest=max(ages),
        bias=fmean(early) / population - 1,
        lost=lost / max(1, clock.sampled),
        room=whole - (end.held - begin.held) / seconds,
        by_slots=(end.slots - begin.slots) / seconds,
    )
