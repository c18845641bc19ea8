# SPDX-License-Identifier: Apache-2.0
"""Values to pixels: axes with few round ticks, gaps, labels that keep apart.

Contract: pure. Whatever finite values are given, every pixel is between the ends of its axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import fmean, median_low
from typing import Final

LARGEST: Final = 1e100
"""Beyond it a value is drawn at the edge; differences stay finite."""
NARROW: Final = 1e-6
"""A spread that is less of its values cannot be told apart on an axis."""

PIXELS: Final = 3
"""Width of a column where there are more points than a line can show."""

type Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A straight axis; where its ends are one value, that is in its middle."""

    low: float
    high: float
    start: float
    """The pixel of ``low``."""
    stop: float
    """The pixel of ``high``."""

    def at(self, value: float) -> float:
        """The pixel of a value; one that is outside lies at the edge."""
        span = self.high - self.low
        share = (min(max(value, self.low), self.high) - self.low) / span if span else 0.5
        return self.start + (self.stop - self.start) * share


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One or several points of a line, in pixels: the mean, and how far they go up and down."""

    x: float
    top: float
    middle: float
    bottom: float


def ticks(values: Iterable[float], zero: bool = True, parts: int = 4) -> list[float]:
    """Round values, evenly apart, that enclose all of these, and 0 if wanted."""
    held = [min(max(value, -LARGEST), LARGEST) for value in values]
    low, high = min(held, default=0.0), max(held, default=0.0)
    if zero or high - low <= NARROW * max(abs(low), abs(high)):
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low < 1 / LARGEST:
        low, high = 0.0, 1.0
    step = round_step((high - low) / parts)
    first, last = math.floor(low / step + NARROW), math.ceil(high / step - NARROW)
    return [n * step for n in range(first, last + 1)]


def whole_ticks(low: int, high: int, parts: int = 5) -> list[int]:
    """Round whole numbers between two, both included; at least one."""
    step = max(1, round(round_step((high - low) / parts))) if high > low else 1
    first = -(-low // step)
    return [n * step for n in range(first, high // step + 1)] or [low]


def round_step(raw: float) -> float:
    """The next of 1, 2 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(raw))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= raw * (1 - NARROW))


def short(value: float) -> str:
    """A tick as a person writes it: ``0.02``, ``160k``, ``1e-6``."""
    for size, mark in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size <= abs(value) < 1e15:
            return f"{value / (1e3 if mark == 'k' else size):g}{mark}"
    return f"{value:g}".replace("e-0", "e-").replace("e+0", "e+")


def usual(steps: Sequence[int]) -> int:
    """How far apart steps mostly are."""
    return median_low(later - step for step, later in pairwise(steps)) if len(steps) > 1 else 1


def stretches(
    steps: Sequence[int], values: Sequence[float | None]
) -> list[list[tuple[int, float]]]:
    """What was measured without a gap: of steps as far apart as steps here mostly are."""
    far = usual(steps)
    found: list[list[tuple[int, float]]] = []
    last: int | None = None
    for step, value in zip(steps, values, strict=True):
        if value is None:
            last = None
            continue
        if last is None or step - last > far:
            found.append([])
        found[-1].append((step, value))
        last = step
    return found


def gathered(points: Sequence[Point]) -> list[Column]:
    """Points by columns of pixels; as they are where there is room for each."""
    if len(points) * PIXELS <= 2 * (points[-1][0] - points[0][0]) or len(points) == 1:
        return [Column(x=x, top=y, middle=y, bottom=y) for x, y in points]
    found: list[Column] = []
    for _, group in groupby(points, key=lambda point: point[0] // PIXELS):
        xs, ys = zip(*group, strict=True)
        column = Column(x=fmean(xs), top=min(ys), middle=fmean(ys), bottom=max(ys))
        found.append(column)
    return found


def apart(wanted: Sequence[float], gap: float, top: float, bottom: float) -> list[float]:
    """Heights near those wanted, in their order, at least a gap from each other where that fits."""
    order = sorted(range(len(wanted)), key=lambda n: wanted[n])
    gap = min(gap, (bottom - top) / max(1, len(wanted) - 1))
    placed = [0.0] * len(wanted)
    least = top
    for n in order:
        placed[n] = max(wanted[n], least)
        least = placed[n] + gap
    most = bottom
    for n in reversed(order):
        placed[n] = min(placed[n], most)
        most = placed[n] - gap
    return placed
