# SPDX-License-Identifier: Apache-2.0
"""How far the trainer's log-probs are from the recorded ones.

Contract: every token weighs the same, whichever sample, turn or micro-batch it is of. ``l`` is the
trainer's log-prob of a token, ``μ`` the recorded one, in nats; all of it is reckoned in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from rltrain.gates.taken import Compared, Doubles, of_all

EDGES: Final = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 3e-2, 1e-1, 1.0, float("inf"))
"""Of the histogram's bins, in nats."""
WORST: Final = 10
BEFORE: Final = 12
AFTER: Final = 6
"""Tokens of context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of some tokens, at least one."""

    tokens: int
    mean: float
    """Of \\|l - μ\\|: what is bounded."""
    signed: float
    """Mean of l - μ."""
    p50: float
    p90: float
    p99: float
    most: float
    kl: float
    """Mean of r - 1 - log r with r = exp(l - μ): how far the trainer is from the rollout."""

    @classmethod
    def of(cls, rollout: Doubles, trainer: Doubles) -> Self:
        """Two log-probs a token."""
        difference = trainer - rollout
        size = np.abs(difference)
        bounded = np.clip(difference, -20.0, 20.0)
        p50, p90, p99 = np.quantile(size, [0.5, 0.9, 0.99]).tolist()
        return cls(
            tokens=len(size),
            mean=float(size.mean()),
            signed=float(difference.mean()),
            p50=p50,
            p90=p90,
            p99=p99,
            most=float(size.max()),
            kl=float((np.expm1(bounded) - bounded).mean()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """All tokens of turns of one number."""

    turn: int
    figures: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Tokens whose \\|l - μ\\| is in ``[low, high)``."""

    low: float
    high: float
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Worst:
    """A token, and what stands around it."""

    trajectory_id: str
    place: int
    """In the stream."""
    turn: int
    before: str
    token: str
    after: str
    rollout: float
    trainer: float


def histogram(rows: Sequence[Compared]) -> tuple[Bin, ...]:
    """Every token in its bin."""
    rollout, trainer = of_all(rows)
    counts, _ = np.histogram(np.abs(trainer - rollout), np.array(EDGES))
    pairs = zip(EDGES, EDGES[1:], counts.tolist(), strict=False)
    return tuple(Bin(low=low, high=high, tokens=count) for low, high, count in pairs)


def by_turn(rows: Sequence[Compared]) -> tuple[Turn, ...]:
    """In the order of the turns."""
    if not rows:
        return ()
    rollout, trainer = of_all(rows)
    turns = np.concatenate([each.row.turn[each.row.sample.mask] for each in rows])
    return tuple(
        Turn(turn=turn, figures=Figures.of(rollout[turns == turn], trainer[turns == turn]))
        for turn in np.unique(turns).tolist()
    )


def worst(
    rows: Sequence[Compared], decode: Callable[[Sequence[int]], str], most: int = WORST
) -> tuple[Worst, ...]:
    """The tokens furthest off, worst first."""
    found: list[tuple[float, Compared, int]] = []
    for each in rows:
        size = np.nan_to_num(np.abs(each.difference), nan=-1.0)
        for place in np.argsort(-size, kind="stable")[:most].tolist():
            if size[place] >= 0.0:
                found.append((float(size[place]), each, place))
    found.sort(key=lambda each: -each[0])
    return tuple(_worst(each, place, decode) for _, each, place in found[:most])


def _worst(each: Compared, place: int, decode: Callable[[Sequence[int]], str]) -> Worst:
    sample = each.row.sample
    ids = sample.token_ids.tolist()
    return Worst(
        trajectory_id=sample.trajectory_id,
        place=place,
        turn=int(each.row.turn[place]),
        before=decode(ids[max(0, place - BEFORE) : place]),
        token=decode([ids[place]]),
        after=decode(ids[place + 1 : place + 1 + AFTER]),
        rollout=float(sample.logprobs[place]),
        trainer=float(each.trainer[place]),
    )
