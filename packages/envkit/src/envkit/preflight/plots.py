# SPDX-License-Identifier: Apache-2.0
"""What the plots of a report share, and its plots without a time axis, as inline SVG.

Contract: pure; coordinates are in pixels of a 960 wide drawing that scales with the page. Colours
are CSS classes of the page, so that a plot is right on a light and on a dark screen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from envkit.preflight.markup import Child, Html, el
from envkit.preflight.text import one_line, seconds
from envkit.preflight.types import PHASES, Quantiles, TaskRow

WIDTH: Final = 960
LEFT: Final = 150
RIGHT: Final = 20
DOTS_WIDTH: Final = 170


class Scale:
    """Seconds to pixels, from 0 to a maximum."""

    def __init__(self, top: float) -> None:
        self.top = top

    def x(self, value: float) -> float:
        """Where a moment is."""
        return LEFT + (WIDTH - LEFT - RIGHT) * value / self.top

    def axis(self, top: float, bottom: float) -> list[Html]:
        """Four to ten round ticks with their lines."""
        step = round_step(self.top, 5)
        ticks = [n * step for n in range(int(self.top / step + 1e-9) + 1)]
        return [_tick(self.x(t), f"{t:g} s", top, bottom) for t in ticks]


def round_step(top: float, parts: int) -> float:
    """1, 2 or 5 times a power of ten: about so many of them reach the top."""
    raw = top / parts
    power = 10.0 ** math.floor(math.log10(raw))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)


def legend(names: Sequence[str]) -> Html:
    """The colours of the phases that occur."""
    return el(
        "p",
        [el("span", el("i", class_=f"key {phase_class(n)}"), one_line(n, 30)) for n in names],
        class_="legend",
    )


def phase_class(name: str) -> str:
    """The class that gives a phase its colour."""
    return f"p-{name}" if name in PHASES else "p-other"


def phase_plot(phases: Mapping[str, Quantiles]) -> Html:
    """p50, p95, p99 and maximum of each phase on one scale."""
    if not phases:
        return Html("")
    scale = Scale(max(row.max for row in phases.values()) or 1e-3)
    rows = [
        _phase_row(name, row, scale, 28 + n * 26) for n, (name, row) in enumerate(phases.items())
    ]
    height = 28 + len(phases) * 26 + 4
    return svg(height, scale.axis(20, height - 4), rows)


def reward_dots(row: TaskRow) -> Html:
    """A task's valid rewards between 0 and 1, a dot's area by how many earned each."""
    low, high = 12, DOTS_WIDTH - 12
    marks = [
        el("line", x1=x, x2=x, y1=5, y2=17, class_="grid") for x in (low, (low + high) / 2, high)
    ]
    line = el("line", x1=low, x2=high, y1=11, y2=11, class_="grid")
    dots = [
        el(
            "circle",
            el("title", f"{count} of {reward:g}"),
            cx=low + (high - low) * min(1.0, max(0.0, reward)),
            cy=11,
            r=_radius(count),
            class_="reward",
        )
        for reward, count in row.rewards
    ]
    box = f"0 0 {DOTS_WIDTH} 22"
    return el("svg", line, marks, dots, viewBox=box, role="img", class_="dots", width=DOTS_WIDTH)


def label(name: str, middle: float) -> Html:
    """A name at the left of its row, in full where one points at it."""
    shown = name if len(name) <= 20 else f"{name[:10]}…{name[-9:]}"
    text = el("title", name), one_line(shown)
    return el("text", *text, x=LEFT - 8, y=middle, class_="name", text_anchor="end", dy="0.35em")


def svg(height: float, *children: Child) -> Html:
    """A drawing as wide as the page."""
    box = f"0 0 {WIDTH} {height:.0f}"
    return el("svg", *children, viewBox=box, role="img", xmlns="http://www.w3.org/2000/svg")


def _tick(x: float, text: str, top: float, bottom: float) -> Html:
    line = el("line", x1=x, x2=x, y1=top, y2=bottom, class_="grid")
    return el("g", line, el("text", text, x=x, y=14, class_="tick", text_anchor="middle"))


def _phase_row(name: str, row: Quantiles, scale: Scale, y: float) -> Html:
    tip = f"{name}: p50 {seconds(row.p50)}, p95 {seconds(row.p95)}, max {seconds(row.max)}"
    kind, zero = phase_class(name), scale.x(0)
    parts = [
        el("line", x1=zero, x2=scale.x(row.max), y1=y + 9, y2=y + 9, class_="whisker"),
        _bar(scale, row.p99, y + 5, 8, f"{kind} faint", tip),
        _bar(scale, row.p95, y + 2, 14, f"{kind} soft", tip),
        _bar(scale, row.p50, y, 18, kind, tip),
        el("line", x1=scale.x(row.max), x2=scale.x(row.max), y1=y + 2, y2=y + 16, class_="whisker"),
    ]
    return el("g", label(name, y + 9), parts)


def _bar(scale: Scale, value: float, y: float, height: float, kind: str, tip: str) -> Html:
    width = max(0.5, scale.x(value) - scale.x(0))
    return el("rect", el("title", tip), x=LEFT, y=y, width=width, height=height, class_=kind)


def _radius(count: int) -> float:
    return min(9.0, 3.0 + 0.6 * math.sqrt(count))
