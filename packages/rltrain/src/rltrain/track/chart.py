# SPDX-License-Identifier: Apache-2.0
"""Lines over steps as inline SVG, each with its name at its end.

Contract: pure; coordinates are pixels of a drawing that scales with the page, colours are CSS
classes of it. What was not measured is a gap; a point between two gaps is a dot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from envkit.preflight.markup import Child, Html, el
from rltrain.track.scale import (
    Axis,
    Column,
    Point,
    apart,
    gathered,
    short,
    stretches,
    ticks,
    whole_ticks,
)

HALF: Final = 500
"""Pixels of a chart that shares its row with another."""
WIDE: Final = 1032
LEFT: Final = 48
RIGHT: Final = 92
TOP: Final = 12
FOOT: Final = 26
LINE: Final = 15
"""Pixels between two labels."""

type Values = Sequence[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One line."""

    name: str
    values: Values
    """One a step; None for what was not measured."""
    colour: str
    """A CSS class of the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One drawing."""

    title: str
    unit: str
    steps: Sequence[int]
    series: Sequence[Series]
    band: tuple[Values, Values] | None = None
    """Low and high of what lies behind the first series."""
    bound: float | None = None
    """A value that is not to be passed."""
    zero: bool = True
    """Whether the axis begins at 0."""
    wide: bool = False
    height: int = 190


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A chart's two axes, with their ticks."""

    x: Axis
    y: Axis
    across: Sequence[int]
    up: Sequence[float]


def drawn(chart: Chart) -> Html:
    """The chart under its title."""
    frame = framed(chart)
    return figure(
        chart.title,
        chart.unit,
        (chart.wide, chart.height),
        grid(frame),
        _band(chart, frame),
        _bound(chart, frame),
        [_line(chart.steps, each, frame) for each in chart.series],
        labels(
            [(each.name, each.colour, _end(chart.steps, each, frame)) for each in chart.series],
            frame,
        ),
    )


def framed(chart: Chart) -> Frame:
    """Axes that hold every value of the chart."""
    low, high = chart.band or ((), ())
    bound = () if chart.bound is None else (chart.bound,)
    values = [*low, *high, *bound, *(value for each in chart.series for value in each.values)]
    up = ticks([value for value in values if value is not None], chart.zero)
    return frame_of(chart.steps, up, (chart.wide, chart.height))


def frame_of(
    steps: Sequence[int], up: Sequence[float], size: tuple[bool, int], margin: float = 0.0
) -> Frame:
    """Axes over steps with a margin of them, and from the lowest of these ticks to the highest."""
    wide, height = size
    across = whole_ticks(min(steps), max(steps), 10 if wide else 6)
    right = (WIDE if wide else HALF) - RIGHT
    first, last = min(steps) - margin, max(steps) + margin
    x = Axis(low=first, high=last, start=LEFT, stop=right)
    y = Axis(low=up[0], high=up[-1], start=height - FOOT, stop=TOP)
    return Frame(x=x, y=y, across=across, up=up)


def figure(title: str, unit: str, size: tuple[bool, int], *marks: Child) -> Html:
    """A drawing under its title."""
    wide, height = size
    box = f"0 0 {WIDE if wide else HALF} {height}"
    caption = el("figcaption", title, el("span", f" {unit}" if unit else ""))
    svg = el("svg", *marks, viewBox=box, role="img", aria_label=f"{title}, {unit}, by step")
    return el("figure", caption, svg, class_="wide" if wide else "half")


def grid(frame: Frame) -> list[Html]:
    """Both axes, with few ticks."""
    left, right, bottom = frame.x.start, frame.x.stop, frame.y.start
    marks: list[Html] = []
    for value in frame.up:
        y = round(frame.y.at(value), 1)
        marks.append(el("line", x1=left, x2=right, y1=y, y2=y, class_="grid"))
        marks.append(text(short(value), left - 7, y + 4, "tick end"))
    marks += [text(short(n), frame.x.at(n), bottom + 18, "tick middle") for n in frame.across]
    return [*marks, text("step", right + 24, bottom + 18, "tick")]


def labels(ends: Sequence[tuple[str, str, float | None]], frame: Frame) -> list[Html]:
    """Names of lines, each in its colour, beside the heights they end at."""
    there = [(name, colour, y) for name, colour, y in ends if y is not None]
    heights = apart([y for _, _, y in there], LINE, frame.y.stop, frame.y.start)
    return [
        text(name, frame.x.stop + 10, y + 4, f"name {colour}")
        for (name, colour, _), y in zip(there, heights, strict=True)
    ]


def text(words: str, x: float, y: float, kind: str) -> Html:
    """Words at a place."""
    return el("text", words, x=round(x, 1), y=round(y, 1), class_=kind)


def points(steps: Sequence[int], values: Values, frame: Frame) -> list[list[Point]]:
    """Where the values are, one list between two gaps."""
    return [
        [(frame.x.at(step), frame.y.at(value)) for step, value in stretch]
        for stretch in stretches(steps, values)
    ]


def _line(steps: Sequence[int], series: Series, frame: Frame) -> list[Html]:
    """The line; where points are dense their mean, before how far they go up and down."""
    found = [gathered(stretch) for stretch in points(steps, series.values, frame)]
    lines = [[(c.x, c.middle) for c in stretch] for stretch in found]
    spreads = [stretch for stretch in found if any(c.top < c.bottom for c in stretch)]
    last = [lines[-1][-1]] if lines else []
    dots = dict.fromkeys([*(line[0] for line in lines if len(line) == 1), *last])
    return [
        *_area([(stretch, stretch) for stretch in spreads], f"spread {series.colour}"),
        *_curve([line for line in lines if len(line) > 1], f"curve {series.colour}"),
        *(_dot(point, series.colour) for point in dots),
    ]


def _band(chart: Chart, frame: Frame) -> list[Html]:
    if chart.band is None:
        return []
    both = [a is not None and b is not None for a, b in zip(*chart.band, strict=True)]
    low, high = (
        points(chart.steps, [v if n else None for v, n in zip(end, both, strict=True)], frame)
        for end in chart.band
    )
    pairs = [(gathered(a), gathered(b)) for a, b in zip(low, high, strict=True)]
    return _area(pairs, "band")


def _area(pairs: Sequence[tuple[Sequence[Column], Sequence[Column]]], kind: str) -> list[Html]:
    """What lies between the bottoms of some columns and the tops of others."""
    shapes = [
        _path([*((c.x, c.top) for c in high), *((c.x, c.bottom) for c in reversed(low))]) + "Z"
        for low, high in pairs
    ]
    return [el("path", d=" ".join(shapes), class_=kind)] if shapes else []


def _curve(lines: Sequence[Sequence[Point]], kind: str) -> list[Html]:
    return [el("path", d=" ".join(map(_path, lines)), class_=kind)] if lines else []


def _bound(chart: Chart, frame: Frame) -> Child:
    if chart.bound is None:
        return ""
    y = round(frame.y.at(chart.bound), 1)
    line = el("line", x1=frame.x.start, x2=frame.x.stop, y1=y, y2=y, class_="bound")
    return [line, text(short(chart.bound), frame.x.start + 4, y - 5, "tick bound-name")]


def _end(steps: Sequence[int], series: Series, frame: Frame) -> float | None:
    """The height of the last point that is drawn."""
    found = points(steps, series.values, frame)
    return gathered(found[-1])[-1].middle if found else None


def _dot(point: Point, colour: str) -> Html:
    return el("circle", cx=round(point[0], 1), cy=round(point[1], 1), r=3, class_=f"dot {colour}")


def _path(line: Sequence[Point]) -> str:
    return f"M{'L'.join(f'{x:.1f} {y:.1f}' for x, y in line)}"
