# SPDX-License-Identifier: Apache-2.0
"""The numbers of a report: quantiles, a 95 % interval, a mean with its bounds.

Contract: pure functions over numbers; nothing measured gives None, never 0. Quantiles are
nearest-rank, so each one was measured (p99 of six values is their maximum). Intervals are Wilson
score intervals: they stay inside [0, 1], and at 0 of n they still give an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Final

from envkit.preflight.types import Interval, Quantiles, Rewards

Z95: Final = 1.959963984540054
"""The 97.5 % point of the normal distribution: two sides, 95 % between them."""


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest value with at least ``share`` of all values at or below it."""
    return ordered[max(0, math.ceil(share * len(ordered) - 1e-9) - 1)]


def quantiles(values: Collection[float]) -> Quantiles | None:
    """p50, p95, p99 and maximum; None where there is no value."""
    ordered = sorted(values)
    if not ordered:
        return None
    p50, p95, p99 = (quantile(ordered, share) for share in (0.50, 0.95, 0.99))
    return Quantiles(n=len(ordered), p50=p50, p95=p95, p99=p99, max=ordered[-1])


def wilson(share: float, n: int) -> tuple[float, float]:
    """The Wilson 95 % interval around a share of ``n`` trials (Wilson 1927, JASA 22:209)."""
    z2 = Z95 * Z95
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    # Rounding must not push the interval off the point at 0 of n and n of n.
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def rate(count: int, n: int) -> Interval:
    """``count`` of ``n`` with its interval; all None where ``n`` is 0."""
    if n == 0:
        return Interval(value=None, low=None, high=None)
    low, high = wilson(count / n, n)
    return Interval(value=count / n, low=low, high=high)


def mean_interval(values: Sequence[float]) -> Interval:
    """A mean with its interval.

    In [0, 1] it is Wilson's around the mean: among values in [0, 1] with that mean a coin varies
    most, so the interval is at least wide enough, also where all values are equal. Outside [0, 1]
    it is the normal interval. Both take the values as independent.
    """
    if not values:
        return Interval(value=None, low=None, high=None)
    mean = math.fsum(values) / len(values)
    if all(0 <= value <= 1 for value in values):
        mean = min(1.0, max(0.0, mean))
        low, high = wilson(mean, len(values))
    else:
        half = Z95 * _standard_error(values, mean)
        low, high = mean - half, mean + half
    return Interval(value=mean, low=low, high=high)


def rewards(valid: Sequence[float], invalid: int) -> Rewards:
    """The mean of the valid rewards, and the mean over all if each invalid one were 0, or 1."""
    point, total, trials = mean_interval(valid), math.fsum(valid), len(valid) + invalid
    return Rewards(
        mean=point.value,
        n=len(valid),
        low=point.low,
        high=point.high,
        all_invalid_0=total / trials if trials else None,
        all_invalid_1=(total + invalid) / trials if trials else None,
    )


def _standard_error(values: Sequence[float], mean: float) -> float:
    if len(values) == 1:
        return math.inf
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return math.sqrt(variance / len(values))
