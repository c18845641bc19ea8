# SPDX-License-Identifier: Apache-2.0
"""A plan: both ceilings, which binds, and a simulated run for each split of the nodes.

Contract: the same recipe, assumptions, trajectories and seed give the same plan. Nothing is
started and nothing is written. What a figure rests on is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from rltrain.batch.config import BatchConfig
from rltrain.buffer.config import BufferConfig
from rltrain.buffer.simulate import Setting
from rltrain.cluster.config import HERE, ClusterConfig
from rltrain.plan.assumptions import Assumptions
from rltrain.plan.calibrate import Calibration, tables_of
from rltrain.plan.ceilings import Interval, Kv, Place, interval, kv
from rltrain.plan.clock import Went, went
from rltrain.plan.grid import Split, own, splits
from rltrain.plan.hardware import engine_of, trainer_of
from rltrain.plan.published import Published
from rltrain.plan.speed import Speed, speed_of
from rltrain.plan.trials import Population, made_up
from rltrain.rollout.config import RolloutConfig

OF_A_POPULATION: Final = 256
"""Prompts that lengths are made up for."""
RARELY: Final = 0.02
"""Share of the time in which slots bind and yet it is staleness that does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """What a plan depends on of a recipe's settings."""

    batch: BatchConfig
    buffer: BufferConfig
    rollout: RolloutConfig
    cluster: ClusterConfig = HERE
    checkpointing: bool = False
    """Whether activations are made once more in backward."""

    @property
    def ceiling(self) -> int:
        """(S + 1) x prompts x samples."""
        return self.buffer.ceiling(self.batch.prompts, self.batch.samples)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be planned."""

    name: str
    """Of the recipe."""
    tables: Tables
    config: Mapping[str, Any]
    """Of the model."""
    told: Assumptions
    fixed: frozenset[str]
    """Assumptions that somebody set."""
    recorded: Population | None = None
    calibration: Calibration | None = None
    grid: str | None = None
    steps: int = 40
    seed: int = 0
    published: Published | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A split, and how a run went on it."""

    split: Split
    kv: Kv
    slots: int
    """Trials at once: those asked for, as far as KV memory holds them."""
    went: Went


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All of it."""

    asked: Asked
    population: Population
    rows: tuple[Row, ...]
    """The recipe's own split is the first."""
    free: Went
    """Of the recipe's split with slots without end, where its own are often all taken; else as it
    went: how many staleness lets be under way."""
    interval: Interval
    factor: float
    """What the run that was calibrated by did, as a multiple of its simulation; 1 without one."""

    def steps_per_h(self, row: Row) -> float:
        """Of a row, corrected by the factor."""
        return row.went.steps_per_h * self.factor

    @property
    def own(self) -> Row:
        """As the recipe has it."""
        return self.rows[0]

    @property
    def staleness(self) -> int:
        """Trials that staleness lets be under way, in the mean."""
        return round(self.free.running)

    @property
    def concurrency(self) -> int:
        """That the recipe asks for."""
        return self.own.split.concurrency

    @property
    def useful(self) -> int:
        """Trials at once beyond which none is under way or held."""
        return min(self.staleness, self.own.kv.ceiling)

    @property
    def binds(self) -> str:
        """``slots``, ``staleness`` or ``kv``: what keeps more from being under way."""
        kv, staleness = self.own.kv.ceiling, self.staleness
        if self.concurrency <= min(kv, staleness):
            return "slots"
        return "kv" if kv < staleness else "staleness"


type Told = Callable[[int, int], None]


def planned(asked: Asked, told: Told = lambda _done, _of: None) -> Plan:
    """Work it out; ``told`` hears how many splits are done.

    Raises:
        Refused: the model does not fit, or a split that was asked for cannot be.
    """
    rollout, cluster = asked.tables.rollout, asked.tables.cluster
    population = _population(asked, asked.told, rollout.context_tokens)
    recipe = own(cluster, rollout.concurrency, asked.tables.buffer.staleness)
    every = splits(recipe, asked.grid)
    rows: list[Row] = []
    for split in every:
        told(len(rows), len(every) + 1)
        rows.append(_row(asked, population, split))
    told(len(rows), len(every) + 1)
    free = rows[0].went
    if free.by_slots > RARELY:
        free = _went(asked, population, recipe, asked.tables.ceiling)
    return Plan(
        asked=asked,
        population=population,
        rows=tuple(rows),
        free=free,
        interval=_interval(asked, recipe, rollout.context_tokens),
        factor=_factor(asked),
    )


def _factor(asked: Asked) -> float:
    """Measured steps an hour by simulated ones, of the run's own setting."""
    found = asked.calibration
    if found is None:
        return 1.0
    run = replace(asked, tables=Tables(**tables_of(found.tables)))
    tables = run.tables
    place = own(tables.cluster, tables.rollout.concurrency, tables.buffer.staleness)
    return found.steps_per_h / _row(run, found.population, place).went.steps_per_h


def _population(asked: Asked, told: Assumptions, context: int) -> Population:
    if asked.recorded is not None:
        return asked.recorded
    if asked.calibration is not None:
        return asked.calibration.population
    samples = asked.tables.batch.samples
    return made_up(told, context, OF_A_POPULATION, samples, asked.seed)


def _interval(asked: Asked, split: Split, context: int) -> Interval:
    fixed: Collection[str] = asked.fixed
    if asked.recorded is not None or asked.calibration is not None:
        fixed = {*fixed, "lengths.median"}

    def ceiling(told: Assumptions) -> int:
        return _kv(asked, told, split.cluster, _population(asked, told, context)).ceiling

    return interval(asked.told, fixed, ceiling, context)


def _kv(asked: Asked, told: Assumptions, cluster: ClusterConfig, population: Population) -> Kv:
    rollout, batch = asked.tables.rollout, asked.tables.batch
    place = Place(
        engines=cluster.engines,
        tp=cluster.engine_tp,
        gpus=cluster.gpus_per_node > 0,
        kv_gib=rollout.kv_cache_gib,
        prompts_at_once=max(1.0, batch.samples / cluster.engines),
    )
    return kv(asked.config, told, place, population)


def _row(asked: Asked, population: Population, split: Split) -> Row:
    found = _kv(asked, asked.told, split.cluster, population)
    slots = max(1, min(split.concurrency, found.ceiling))
    return Row(
        split=split,
        kv=found,
        slots=slots,
        went=_went(asked, population, split, slots),
    )


def _went(asked: Asked, population: Population, split: Split, slots: int) -> Went:
    buffer, batch = replace(asked.tables.buffer, staleness=split.staleness), asked.tables.batch
    first = 2 * buffer.staleness + 4  # until then the buffer fills, and that is no steady state
    last = first + asked.steps
    groups = (last + buffer.staleness + 2) * batch.prompts
    setting = Setting(
        buffer=buffer,
        prompts=batch.prompts,
        samples=batch.samples,
        slots=slots,
        steps=last,
        sync_s=asked.told.trainer.sync_s,
        fault_share=asked.told.faults,
        seed=asked.seed,
    )
    trials = population.drawn(groups, batch.samples, asked.seed)
    return went(setting, trials, _speed(asked, population, split.cluster), first, last)


def _speed(asked: Asked, population: Population, cluster: ClusterConfig) -> Speed:
    told = asked.told
    return speed_of(
        population,
        engine_of(asked.config, told, cluster, population.live()),
        cluster.engines,
        trainer_of(asked.config, told, cluster, again=asked.tables.checkpointing),
        cores=told.cores if not cluster.gpus_per_node else 0.0,
        at_work=_at_work(asked),
        box_share=told.time.box_share,
    )


def _at_work(asked: Asked) -> float:
    return asked.tables.rollout.at_work or asked.told.time.turns_a_core * asked.told.cores
