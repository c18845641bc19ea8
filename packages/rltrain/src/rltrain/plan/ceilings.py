# SPDX-License-Identifier: Apache-2.0
"""How many trials KV memory holds.

A trajectory does not take its final length from its begin on: what counts is its *mean live
footprint*, over the time in which it is under way, long ones being met more often. Where samples of
a group share a prompt and an engine, that is kept once. So many are held on average; every one of
them at the end of its context is what surely fits.

Contract: pure. An interval is from the tightest to the roomiest of everything that is spread; a
value that was set is not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

from rltrain.batch.modelcost import Config
from rltrain.plan.assumptions import GIB, GPUS, SPREAD, Assumptions
from rltrain.plan.memory import Layout, layout
from rltrain.plan.trials import Population
from rltrain.refused import Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where engines are."""

    engines: int
    tp: int
    gpus: bool
    """Else the memory of a CPU, of which the recipe says how much is for KV."""
    kv_gib: float = 0.0
    """Of an engine on a CPU."""
    prompts_at_once: float = 1.0
    """Samples of one group that an engine is likely to hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kv:
    """What an engine's memory is taken by."""

    layout: Layout
    room: float
    """Bytes a GPU for KV and states."""
    live: float
    """Mean live tokens of a trajectory."""
    shared: float
    """Of those, how many it has in common with another one on its engine."""
    engines: int

    @property
    def footprint(self) -> float:
        """Bytes a GPU of the mean trajectory."""
        return self.layout.sequence(self.live) - self.shared * self.layout.token

    @property
    def tokens(self) -> float:
        """Of KV that an engine has room for, were there no states and windows."""
        return self.room / self.layout.token if self.layout.token else math.inf

    @property
    def ceiling(self) -> int:
        """Trials over all engines that are held on average."""
        return int(self.engines * self.room / self.footprint)

    def sure(self, context: int) -> int:
        """Trials that are held were each at the end of its context."""
        return int(self.engines * self.room / self.layout.sequence(context))

    def live_of(self, trials: int) -> float:
        """Mean live tokens at which so many are just held."""
        low, high = 0.0, 1e9
        for _ in range(100):
            middle = (low + high) / 2
            fits = trials * self.layout.sequence(middle) <= self.engines * self.room
            low, high = (middle, high) if fits else (low, middle)
        return low


def kv(config: Config, told: Assumptions, place: Place, population: Population) -> Kv:
    """Of a model, where its engines are.

    Raises:
        Refused: its weights leave no room.
    """
    found = layout(config, place.tp, told.memory)
    room = place.kv_gib * GIB
    if place.gpus:
        has = GPUS[told.gpu].memory_gib * told.memory.utilisation - told.memory.overhead_gib
        room = has * GIB - found.weights
        if room <= 0:
            raise Refused(
                f"cluster.engine_tp {place.tp}: weights take {found.weights / GIB:.1f} GiB a GPU,"
                f" and an engine has {has:.1f} there; give it more GPUs, or another --assume gpu"
            )
    together = place.prompts_at_once if told.memory.shared_prompt else 1.0
    prompt = population.mean("prompt")
    return Kv(
        layout=found,
        room=room,
        live=population.live(),
        shared=prompt * (1 - 1 / together) if together > 1 else 0.0,
        engines=place.engines,
    )


# --- an interval ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Trials that KV memory holds on average, from the tightest to the roomiest assumptions."""

    low: int
    high: int
    spread: tuple[str, ...]
    """What was varied, with its two ends."""

    def contains(self, trials: int) -> bool:
        """Whether a figure is in it."""
        return self.low <= trials <= self.high


type Ceiling = Callable[[Assumptions], int]


def interval(told: Assumptions, fixed: Collection[str], ceiling: Ceiling, context: int) -> Interval:
    """Of a ceiling, over all that nobody ``fixed``."""
    varied = {name: ends for name, ends in SPREAD.items() if name not in fixed}
    roomy, tight = (_at(told, varied, end, context) for end in (0, 1))
    return Interval(
        low=_or_none(ceiling, tight),
        high=_or_none(ceiling, roomy),
        spread=tuple(f"{name} {_ends(name, ends)}" for name, ends in varied.items()),
    )


def _or_none(ceiling: Ceiling, told: Assumptions) -> int:
    try:
        return ceiling(told)
    except Refused:
        return 0


def _ends(name: str, ends: tuple[Any, Any]) -> str:
    roomy, tight = (f"{each:g}" if isinstance(each, float) else str(each).lower() for each in ends)
    times = "times " if name == "lengths.median" else ""
    return f"{times}{roomy} to {times}{tight}"


def _at(
    told: Assumptions, varied: dict[str, tuple[Any, Any]], end: int, context: int
) -> Assumptions:
    memory, lengths = told.memory, told.lengths
    for name, ends in varied.items():
        table, _, field = name.partition(".")
        if table == "memory":
            memory = replace(memory, **{field: ends[end]})
        else:
            shape = lengths.of(context)
            median = shape.median * ends[end]
            p95 = min(0.95 * context, median * math.exp(1.6449 * shape.sigma))
            lengths = replace(lengths, median=median, p95=max(p95, median))
    return replace(told, memory=memory, lengths=lengths)
