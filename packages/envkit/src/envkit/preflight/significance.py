# SPDX-License-Identifier: Apache-2.0
"""Whether two sets of measurements differ by more than chance, and by how much.

Contract: pure, two-sided, deterministic for a seed. Values are compared only within their stratum
(a task at a concurrency), so that another mix of tasks is no difference. ``rank_test`` is exact
where few values are compared and normal where many are; with one stratum it is the Wilcoxon-Mann-
Whitney test, with several van Elteren's (Bull. Inst. Int. Stat. 37:351, 1960). Every test takes its
values as independent: a machine that was slower on that day is a difference like any other.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median
from typing import Final

from envkit.preflight.stats import quantile
from envkit.preflight.types import Interval

EXACT_UP_TO: Final = 60
"""Values of both sides together: 0.2 s. With 30 on each side the normal probability was within
0.001 of the exact one wherever that was below 0.05; with 2 of 60 on one side it was 0.017 off."""
RESAMPLES: Final = 2000
"""Bootstrap draws: each end of a 95 % interval rests on fifty of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """What was measured of one kind of trial, before and now; neither side is empty."""

    before: tuple[float, ...]
    now: tuple[float, ...]


def strata[K](
    before: Mapping[K, Sequence[float]], now: Mapping[K, Sequence[float]]
) -> list[Stratum]:
    """The kinds that both sides measured."""
    return [
        Stratum(before=tuple(values), now=tuple(now[key]))
        for key, values in before.items()
        if values and now.get(key)
    ]


def rank_test(pairs: Sequence[Stratum]) -> float:
    """The probability of so great a difference in ranks where there is none."""
    ranked = [_ranked(pair) for pair in pairs]
    if not ranked or all(each.variance == 0 for each in ranked):
        return 1.0
    if sum(len(each.doubled) for each in ranked) <= EXACT_UP_TO:
        return _exact(ranked)
    gap = sum((each.rank_sum - each.expected) / (len(each.doubled) + 1) for each in ranked)
    variance = sum(each.variance / (len(each.doubled) + 1) ** 2 for each in ranked)
    return math.erfc(abs(gap) / math.sqrt(2 * variance))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranks:
    doubled: tuple[int, ...]
    """Twice the mid-rank of every value of both sides, so that ties stay whole numbers."""
    now: int
    """How many of them are of now."""
    rank_sum: float
    """Of the values of now."""

    @property
    def expected(self) -> float:
        return self.now * (len(self.doubled) + 1) / 2

    @property
    def variance(self) -> float:
        """Under chance, ties taken into account (Lehmann 1975, Nonparametrics, 1.35)."""
        n = len(self.doubled)
        if n < 2:
            return 0.0
        ties = sum(t**3 - t for t in Counter(self.doubled).values())
        return self.now * (n - self.now) / 12 * (n + 1 - ties / (n * (n - 1)))


def _ranked(pair: Stratum) -> _Ranks:
    counts = Counter((*pair.before, *pair.now))
    ordered = sorted(counts)
    below = [0, *accumulate(counts[value] for value in ordered)]
    rank = {value: 2 * below[n] + counts[value] + 1 for n, value in enumerate(ordered)}
    return _Ranks(
        doubled=tuple(rank[value] for value in (*pair.before, *pair.now)),
        now=len(pair.now),
        rank_sum=sum(rank[value] for value in pair.now) / 2,
    )


def _exact(ranked: Sequence[_Ranks]) -> float:
    """Over every way to deal the values out to the two sides."""
    scale = math.lcm(*(len(each.doubled) + 1 for each in ranked))
    ways, gap = {0: 1}, 0
    for each in ranked:
        weight = scale // (len(each.doubled) + 1)
        middle = round(2 * each.expected)
        gap += weight * (round(2 * each.rank_sum) - middle)
        dealt = {weight * (total - middle): n for total, n in _deals(each).items()}
        ways = _convolved(ways, dealt)
    extreme = sum(n for total, n in ways.items() if abs(total) >= abs(gap))
    return extreme / sum(ways.values())


def _deals(ranks: _Ranks) -> dict[int, int]:
    """For each sum of doubled ranks, in how many ways so many values come to it."""
    by_size: list[Counter[int]] = [Counter({0: 1}), *(Counter[int]() for _ in range(ranks.now))]
    for rank in ranks.doubled:
        for size in range(ranks.now, 0, -1):
            for total, n in by_size[size - 1].items():
                by_size[size][total + rank] += n
    return by_size[ranks.now]


def _convolved(first: Mapping[int, int], second: Mapping[int, int]) -> dict[int, int]:
    sums: Counter[int] = Counter()
    for one, n in first.items():
        for other, m in second.items():
            sums[one + other] += n * m
    return sums


def fisher(hits_before: int, n_before: int, hits_now: int, n_now: int) -> float:
    """Fisher's exact probability of two shares so unlike (Fisher 1935, JRSS 98:39)."""
    hits, least = hits_before + hits_now, max(0, hits_before + hits_now - n_now)
    ways = [
        math.comb(n_before, x) * math.comb(n_now, hits - x)
        for x in range(least, min(hits, n_before) + 1)
    ]
    seen = ways[hits_before - least]
    return sum(way for way in ways if way <= seen) / sum(ways)


def holm(probabilities: Sequence[float]) -> list[float]:
    """Adjusted for their number (Holm 1979, Scand. J. Stat. 6:65): where nothing differs, the
    chance that any of them falls below a bound is at most that bound."""
    order = sorted(range(len(probabilities)), key=lambda n: probabilities[n])
    adjusted, highest = [1.0] * len(order), 0.0
    for place, n in enumerate(order):
        highest = max(highest, min(1.0, (len(order) - place) * probabilities[n]))
        adjusted[n] = highest
    return adjusted


def ratio_of_medians(pairs: Sequence[Stratum], floor: float, seed: int = 0) -> Interval:
    """How many times as large the values of now are, with a 95 % bootstrap interval.

    Each value is taken relative to the middle of its own stratum, so that slow tasks and quick
    ones count alike; with one stratum this is the plain ratio of the two medians. What is below
    ``floor``, in the unit of the values, counts as ``floor``: half a millisecond against a tenth
    of one is no fivefold slow-down.
    """
    before, now = _relative(pairs, floor)
    if not before:
        return Interval(value=None, low=None, high=None)
    rng, point = random.Random(seed), median(now) / median(before)
    drawn = sorted(_drawn_median(now, rng) / _drawn_median(before, rng) for _ in range(RESAMPLES))
    low, high = quantile(drawn, 0.025), quantile(drawn, 0.975)
    return Interval(value=point, low=min(point, low), high=max(point, high))


def _relative(pairs: Sequence[Stratum], floor: float) -> tuple[list[float], list[float]]:
    """All values of before, and of now, over the middles of their strata; sorted."""
    before: list[float] = []
    now: list[float] = []
    for pair in pairs:
        sides = [[max(floor, v) for v in side] for side in (pair.before, pair.now)]
        middle = math.sqrt(median(sides[0]) * median(sides[1])) if len(pairs) > 1 else 1.0
        before += [value / middle for value in sides[0]]
        now += [value / middle for value in sides[1]]
    return sorted(before), sorted(now)


def _drawn_median(ordered: Sequence[float], rng: random.Random) -> float:
    """The median of a resample, without drawing it.

    The middle one of ``n`` uniform draws is beta distributed, and its place in the sorted values
    is the resample's median. An even number has two middle ones; either is taken.
    """
    n = len(ordered)
    middle = (n + 1) // 2 if n % 2 or rng.random() < 0.5 else n // 2 + 1
    return ordered[min(n - 1, int(n * rng.betavariate(middle, n + 1 - middle)))]
