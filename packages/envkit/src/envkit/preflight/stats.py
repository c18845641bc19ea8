# SPDX-License-Identifier: Apache-2.0
"""The numbers of a report: quantiles, a 95 % interval, a mean with its bounds.

Contract: pure functions over numbers; nothing measured gives None, never 0. Quantiles are
nearest-rank, so each one was measured (p99 of six values is their maximum). Intervals of shares are
Wilson score intervals: they stay inside [0, 1], and at 0 of n they still give an upper bound. So
are those of rewards that are all 0 or 1; with partial credit it is Student's t, cut at 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Final

from envkit.preflight.types import Interval, Quantiles, Rewards

Z95: Final = 1.959963984540054
"""The 97.5 % point of the normal distribution: two sides, 95 % between them."""
_T95: Final = (12.706205, 4.302653, 3.182446, 2.776445, 2.570582)
"""The same of Student's t, by degrees of freedom from 1."""


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


def mean_interval(values: Sequence[float]) -> tuple[Interval, str]:
    """A mean with its 95 % interval, and the method: ``Wilson``, ``t`` or ``none``.

    Wilson's where every value is 0 or 1, Student's t otherwise, cut at 0 and 1 where all values lie
    between. Equal values show no spread to reckon with, so partial credit that is everywhere the
    same gets Wilson's, the widest for values in [0, 1] with that mean: a coin varies most. All take
    the values as independent; t also takes the mean of so many as normal.
    """
    if not values:
        return Interval(value=None, low=None, high=None), "none"
    mean = math.fsum(values) / len(values)
    in_unit = all(0 <= value <= 1 for value in values)
    if in_unit and (min(values) == max(values) or set(values) <= {0.0, 1.0}):
        mean = min(1.0, max(0.0, mean))
        low, high = wilson(mean, len(values))
        return Interval(value=mean, low=low, high=high), "Wilson"
    half = t95(len(values) - 1) * _standard_error(values, mean) if len(values) > 1 else math.inf
    low, high = (mean - half, mean + half)
    if in_unit:
        low, high = max(0.0, low), min(1.0, high)
    return Interval(value=mean, low=low, high=high), "t"


def t95(freedom: int) -> float:
    """The 97.5 % point of Student's t with so many degrees of freedom, to three decimals.

    Few degrees from the table, more by the expansion around the normal point (Abramowitz and
    Stegun 1964, 26.7.5).
    """
    if freedom <= len(_T95):
        return _T95[freedom - 1]
    z, n = Z95, freedom
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * n**4)
    )


def rewards(valid: Sequence[float], invalid: int) -> Rewards:
    """The mean of the valid rewards, and the mean over all if each invalid one were 0, or 1."""
    (point, method), total = mean_interval(valid), math.fsum(valid)
    trials = len(valid) + invalid
    return Rewards(
        mean=point.value,
        n=len(valid),
        low=point.low,
        high=point.high,
        method=method,
        all_invalid_0=total / trials if trials else None,
        all_invalid_1=(total + invalid) / trials if trials else None,
    )


def _standard_error(values: Sequence[float], mean: float) -> float:
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return math.sqrt(variance / len(values))
