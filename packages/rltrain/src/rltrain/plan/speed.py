# SPDX-License-Identifier: Apache-2.0
"""Seconds of a trial and of a step, as a function of how many trials are under way.

An engine decodes a token of every sequence it works on in one step, whose time grows with their
number; what it reads (prompts, observations) it reads in between. A trial alternates between its
engine and waiting for its own tools. Where engine, boxes and trainer share cores, everything that
wants one gets an equal part: with r of them wanting C cores, each takes max(1, r / C) times as long
(the utilisation law: cores busy = trials a second x core-seconds of a trial, never above C). Of the
trials, ``at_work`` want one at once; others wait for their turn.

Contract: pure; ``at`` is the steady state of so many trials under way, found by bisection, so the
same question has the same answer. More trials never make one of them faster.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from rltrain.batch.cost import Cost
from rltrain.plan.trials import Population, Trial

CLOSE: Final = 1e-5
"""A share that two ends of a bisection differ by at its end."""
BACKWARD: Final = 3.0
"""Forward and backward, in forward passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One of them; seconds where nothing shares its cores."""

    step_s: float
    """Of a decoding step, whatever is in it."""
    experts_s: float = 0.0
    """More, where a step meets every expert."""
    passed: float = 0.0
    """Share of a layer's experts that a token passes by."""
    sequence_s: float
    """More for each sequence."""
    read_s: float
    """Of a token that is read."""
    threads: float = 1.0
    """Cores it wants while it works."""

    def token_s(self, sequences: float, read: float) -> float:
        """Of a sampled token, with so many sequences being worked on and so many tokens read for
        each sampled one."""
        met = 1 - self.passed**sequences if self.experts_s else 0.0
        each = self.sequence_s + read * self.read_s
        return self.step_s + met * self.experts_s + sequences * each


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainer:
    """Seconds where nothing shares its cores."""

    fixed_s: float
    token_s: float
    """Of a token of a trajectory."""
    pair_s: float = 0.0
    """Of a pair of tokens of a sample."""
    sync_s: float
    threads: float = 1.0

    def step_s(self, tokens: tuple[int, ...]) -> float:
        """On samples of these lengths."""
        pairs = sum(each * each for each in tokens) if self.pair_s else 0.0
        return self.fixed_s + self.token_s * sum(tokens) + self.pair_s * pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """How many times as long things take, where cores are shared."""

    slow: float = 1.0
    """What wants a core."""
    box: float = 1.0
    """Of a trial's own work: that, and the wait for its turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A steady state."""

    trial_s: float
    """Of the mean trial."""
    sampling: float
    """Trials that an engine works for, of those under way."""
    crowd: Crowd
    token_s: float
    """Of a sampled token of one trial."""


@dataclass(slots=True, kw_only=True)
class Speed:
    """Of engines, boxes and a trainer."""

    engine: Engine
    engines: int
    trainer: Trainer
    cores: float
    """Shared by all of them; 0: nothing is shared."""
    at_work: float
    """Trials that compute at once; 0: all of them."""
    box_share: float
    """Of what a trial waits for, the part that wants a core."""
    waits_s: float
    sampled: float
    read: float
    """Tokens read for each sampled one."""
    _known: dict[tuple[int, bool], Load] = field(default_factory=dict[tuple[int, bool], Load])

    def at(self, running: int, training: bool) -> Load:
        """With so many trials under way, beside a trainer that is at work or not."""
        key = (running, training)
        if key not in self._known:
            self._known[key] = self._solved(running, training)
        return self._known[key]

    def trial_s(self, trial: Trial, load: Load) -> float:
        """Of one trial under a load: its own waiting, its own tokens."""
        return self._waits(trial.waits_s, load.crowd) + trial.sampled * load.token_s

    def _waits(self, seconds: float, crowd: Crowd) -> float:
        return seconds * (1 - self.box_share + self.box_share * crowd.box)

    def _solved(self, running: int, training: bool) -> Load:
        """The factor at which as much is wanted of the cores as there is."""
        if not self.cores:
            return self._load(running, Crowd())
        most = running + self.engines * self.engine.threads + self.trainer.threads
        slow = _least(
            lambda slow: self._wanted(running, training, slow) <= slow * self.cores,
            max(1.0, most / self.cores),
        )
        return self._load(running, self._crowd(running, slow))

    def _wanted(self, running: int, training: bool, slow: float) -> float:
        """Cores, by what computes at once."""
        crowd = self._crowd(running, slow)
        load = self._load(running, crowd)
        engines = self.engines * min(1.0, load.sampling / self.engines) * self.engine.threads
        trainer = self.trainer.threads if training else 0.0
        return self._boxes(running, load) + engines + trainer

    def _crowd(self, running: int, slow: float) -> Crowd:
        """With turns waited for, until no more compute at once than may."""
        if not self.at_work:
            return Crowd(slow=slow, box=slow)

        def fits(turns: float) -> bool:
            load = self._load(running, Crowd(slow=slow, box=slow * turns))
            return self._boxes(running, load) <= self.at_work

        turns = _least(fits, max(1.0, running / self.at_work))
        return Crowd(slow=slow, box=slow * turns)

    def _boxes(self, running: int, load: Load) -> float:
        """Trials that compute, and do not wait for their turn."""
        return running * self.waits_s * self.box_share * load.crowd.slow / load.trial_s

    def _load(self, running: int, crowd: Crowd) -> Load:
        """Where an engine works for as many trials as its own slowness keeps with it."""
        waits_s = self._waits(self.waits_s, crowd)

        def kept(sampling: float) -> bool:
            engine_s = self.sampled * self._token_s(sampling, crowd)
            return running * engine_s <= sampling * (waits_s + engine_s)

        sampling = _least(kept, float(running), first=0.0)
        token_s = self._token_s(sampling, crowd)
        return Load(
            trial_s=waits_s + self.sampled * token_s,
            sampling=sampling,
            crowd=crowd,
            token_s=token_s,
        )

    def _token_s(self, sampling: float, crowd: Crowd) -> float:
        each = max(1.0, sampling / self.engines)
        return crowd.slow * self.engine.token_s(each, self.read)


def _least(holds: Callable[[float], bool], most: float, first: float = 1.0) -> float:
    """The least from ``first`` on that a condition holds at; it does at ``most``, and from there
    on it always does."""
    if holds(first):
        return first
    low, high = first, most
    while high - low > CLOSE * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def speed_of(
    population: Population,
    engine: Engine,
    engines: int,
    trainer: Trainer,
    cores: float = 0.0,
    at_work: float = 0.0,
    box_share: float = 0.0,
) -> Speed:
    """Of trials like these."""
    sampled = population.mean("sampled")
    return Speed(
        engine=engine,
        engines=engines,
        trainer=trainer,
        cores=cores,
        at_work=at_work if cores else 0.0,
        box_share=box_share if cores else 0.0,
        waits_s=population.mean("waits_s"),
        sampled=sampled,
        read=population.mean("read") / sampled,
    )


def trained(cost: Cost, flops: float, *, again: bool) -> Cost:
    """Seconds of a token and of a pair, at so many FLOPs a second; ``again``: activations are made
    once more in backward."""
    times = (BACKWARD + 1 if again else BACKWARD) / flops
    return Cost(a=cost.a * times, b=cost.b * times)
