# SPDX-License-Identifier: Apache-2.0
"""A ramp for a terminal, a browser and a pull request: one row a level, the knee, a small plot.

Contract: pure; all three show the same cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from envkit.preflight.columns import columns
from envkit.preflight.knee import knee_line
from envkit.preflight.markup import Html, el
from envkit.preflight.text import percent, seconds
from envkit.preflight.types import Level, Quantiles, Ramp

HEAD: Final = (
    "at once", "trials", "trials/s", "an hour", "p50", "p95", "start p95", "act p95", "grade p95",
    "faults", "CPU s", "MiB", "live",
)  # fmt: skip
SHOWN_PHASES: Final = ("start", "act", "grade")
BAR: Final = 40
"""Columns of the longest bar."""
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 960, 260, 70, 30, 40


def cells(level: Level) -> tuple[str, ...]:
    """One row, in the order of ``HEAD``."""
    trial, memory = level.trial_s, level.peak_memory_mib
    return (
        str(level.concurrency),
        str(len(level.trials)),
        f"{level.per_s:.2f}",
        f"{3600 * level.per_s:,.0f}",
        seconds(trial.p50) if trial else "n/a",
        _p95(trial),
        *(_p95(level.phases.get(name)) for name in SHOWN_PHASES),
        percent(level.fault_rate.value),
        f"{level.cpu_s:.2f}",
        "n/a" if memory is None else f"{memory:,.0f}",
        str(level.peak_live),
    )


def _p95(row: Quantiles | None) -> str:
    return seconds(row.p95) if row else "n/a"


def text(ramp: Ramp) -> Iterator[RenderableType]:
    """The table, a bar of throughput a level, the knee."""
    table = columns(*HEAD)
    for level in ramp.levels:
        table.add_row(*cells(level))
    yield table
    yield Text()
    best = max((level.per_s for level in ramp.levels), default=0.0)
    for level in ramp.levels:
        yield Text(bar(level, best, level.concurrency == ramp.knee and not ramp.grows))
    yield Text(knee_line(ramp))


def bar(level: Level, best: float, is_knee: bool) -> str:
    """``   64  ████████████  3.10 trials/s, p95 4.2 s  <- knee``."""
    length = round(BAR * level.per_s / best) if best > 0 else 0
    mark = "  <- knee" if is_knee else ""
    drawn = "█" * length
    return (
        f"{level.concurrency:>6}  {drawn:<{BAR}}  {level.per_s:.2f} trials/s, "
        f"p95 {_p95(level.trial_s)}{mark}"
    )


def plot(ramp: Ramp) -> Html:
    """Throughput and p95 over concurrency, each on a scale of its own from 0."""
    levels = [level for level in ramp.levels if level.trial_s]
    if len(levels) < 2:
        return Html("")
    rates = [level.per_s for level in levels]
    tails = [level.trial_s.p95 for level in levels if level.trial_s]
    at = _places([level.concurrency for level in levels])
    ticks = [
        el("text", str(level.concurrency), x=x, y=HEIGHT - 18, class_="tick", text_anchor="middle")
        for level, x in zip(levels, at, strict=True)
    ]
    sharp = () if ramp.grows else (ramp.knee,)
    knee = [x for level, x in zip(levels, at, strict=True) if level.concurrency in sharp]
    marks = [el("line", x1=x, x2=x, y1=TOP, y2=HEIGHT - BOTTOM, class_="whisker") for x in knee]
    key = el(
        "p",
        el("span", el("i", class_="key rate"), "trials/s"),
        el("span", el("i", class_="key tail"), "p95 seconds a trial"),
        el("span", "the vertical line is the knee" if knee else ""),
        class_="legend",
    )
    base = el(
        "line", x1=LEFT, x2=WIDTH - LEFT, y1=HEIGHT - BOTTOM, y2=HEIGHT - BOTTOM, class_="grid"
    )
    rate_y, tail_y = _heights(rates), _heights(tails)
    over = [high <= low for high, low in zip(rate_y, tail_y, strict=True)]
    under = [not above for above in over]
    curves = [
        _curve(at, rate_y, over, "rate", [f"{rate:.2f} trials/s" for rate in rates]),
        _curve(at, tail_y, under, "tail", [f"p95 {seconds(tail)}" for tail in tails]),
    ]
    box = f"0 0 {WIDTH} {HEIGHT}"
    return Html(
        key
        + el("svg", base, ticks, marks, curves, viewBox=box, role="img",
             xmlns="http://www.w3.org/2000/svg")
    )  # fmt: skip


def _places(values: Sequence[int]) -> list[float]:
    """Along a logarithmic axis: levels are multiples of each other."""
    low, high = math.log(values[0]), math.log(values[-1])
    return [LEFT + (WIDTH - 2 * LEFT) * (math.log(v) - low) / (high - low) for v in values]


def _heights(values: Sequence[float]) -> list[float]:
    """From the base line at 0 to the top at the greatest."""
    top = max(values) or 1.0
    return [HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top for value in values]


def _curve(
    at: Sequence[float],
    heights: Sequence[float],
    labelled_over: Sequence[bool],
    kind: str,
    tips: Sequence[str],
) -> Html:
    """A line with a dot and its figure at every level, over the dot or under it."""
    points = list(zip(at, heights, strict=True))
    path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    dots = [
        _dot(x, y, -8 if over else 16, kind, tip)
        for (x, y), over, tip in zip(points, labelled_over, tips, strict=True)
    ]
    return el("g", el("path", d=path, class_=f"curve {kind}"), dots)


def _dot(x: float, y: float, shift: float, kind: str, tip: str) -> Html:
    dot = el("circle", el("title", tip), cx=x, cy=y, r=4, class_=f"dot {kind}")
    label = el("text", tip, x=x, y=y + shift, class_="tick", text_anchor="middle")
    return el("g", dot, label)
