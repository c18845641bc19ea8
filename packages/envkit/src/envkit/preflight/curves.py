# SPDX-License-Identifier: Apache-2.0
"""A run over time as inline SVG: live boxes, memory, trials by phase, a lane a trial.

Contract: pure; all drawings share one scale of seconds, so that they can be read down the page.
Six hundred lanes are drawn as one path a phase, because a rectangle a stretch would be megabytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from envkit.preflight.markup import Html, el
from envkit.preflight.plots import LEFT, RIGHT, WIDTH, Scale, label, phase_class, round_step, svg
from envkit.preflight.text import one_line, seconds
from envkit.preflight.types import PHASES, Course, Lane, Reading

TOP: Final = 24
CURVE_HEIGHT: Final = 130
LANES_HEIGHT: Final = 720
"""550 trials get a lane of 1.3 px each; a few get the tallest one allowed."""
LANE_MAX: Final = 16.0
LABELLED_FROM: Final = 11.0
"""Pixels of a lane; a lower one cannot carry its name."""
APART_FROM: Final = 4.0
"""Lower lanes touch: gaps below a pixel flicker."""
MOMENTS: Final = 240
"""Columns of the bands."""


def time_scale(course: Course) -> Scale | None:
    """From the beginning of the run to the last that is known of it; None for no run at all."""
    ends = [each.at_s for each in course.readings] + [lane.at_s[-1] for lane in course.lanes]
    return Scale(max(max(ends), 1e-3)) if ends else None


def live_curve(course: Course, scale: Scale, asked: int) -> Html:
    """Boxes that live, with the concurrency asked for and when each first wave went on."""
    top = max(asked, *(each.live for each in course.readings), 1)
    height = _heights(top)
    wanted = el(
        "line", x1=LEFT, x2=WIDTH - RIGHT, y1=height(asked), y2=height(asked), class_="asked"
    )
    barriers = [_barrier(scale.x(at), at) for at in course.barriers_s]
    curve = _steps(course.readings, scale, height, lambda each: each.live, "live")
    return _curve_svg(scale, height, top, "live boxes", wanted, curve, barriers)


def memory_curve(course: Course, scale: Scale) -> Html:
    """Memory of all processes of the run together."""
    top = max((each.memory_mib for each in course.readings), default=0.0) or 1.0
    height = _heights(top)
    curve = _steps(course.readings, scale, height, lambda each: each.memory_mib, "memory")
    return _curve_svg(scale, height, top, "MiB", curve)


def bands(course: Course, scale: Scale) -> Html:
    """How many trials are in each phase, one on top of the other."""
    moments = [scale.top * n / MOMENTS for n in range(MOMENTS + 1)]
    counts = in_phase(course.lanes, moments)
    most = max((sum(row[n] for row in counts.values()) for n in range(len(moments))), default=0)
    height = _heights(max(most, 1))
    base = [0] * len(moments)
    areas: list[Html] = []
    for name, row in counts.items():
        over = [low + count for low, count in zip(base, row, strict=True)]
        there = zip(moments, over, strict=True)
        back = zip(reversed(moments), reversed(base), strict=True)
        points = [f"{scale.x(at):.1f} {height(n):.1f}" for at, n in (*there, *back)]
        tip = el("title", f"{one_line(name, 30)}: {max(row)} at most")
        areas.append(el("path", tip, d=f"M{'L'.join(points)}Z", class_=f"band {phase_class(name)}"))
        base = over
    return _curve_svg(scale, height, max(most, 1), "trials", *areas)


def in_phase(lanes: Sequence[Lane], moments: Sequence[float]) -> Mapping[str, Sequence[int]]:
    """Trials in each phase that occurs, at each of these rising moments."""
    counts: dict[str, list[int]] = {}
    for lane in lanes:
        n = -1
        for column, moment in enumerate(moments):
            while n + 1 < len(lane.at_s) and lane.at_s[n + 1] <= moment:
                n += 1
            if n >= 0 and lane.phases[n]:
                counts.setdefault(lane.phases[n], [0] * len(moments))[column] += 1
    return {name: counts[name] for name in phases_of(lanes) if name in counts}


def phases_of(lanes: Sequence[Lane]) -> list[str]:
    """Those that occur, in the order of the phases."""
    there = {phase for lane in lanes for phase in lane.phases if phase}
    return [*(name for name in PHASES if name in there), *sorted(there - set(PHASES))]


def lanes(course: Course, scale: Scale) -> Html:
    """One lane a trial, in the order they began, a dot where an attempt ended with a fault."""
    row = min(LANE_MAX, LANES_HEIGHT / len(course.lanes))
    middles = [TOP + (n + 0.5) * row for n in range(len(course.lanes))]
    placed = list(zip(course.lanes, middles, strict=True))
    height = TOP + len(course.lanes) * row + 8
    names = [label(lane.trial, y) for lane, y in placed] if row >= LABELLED_FROM else []
    return svg(
        height,
        scale.axis(20, height - 8),
        _stretches(placed, scale, row * (0.86 if row >= APART_FROM else 1.1)),
        [_tip(lane, scale, y, row) for lane, y in placed],
        [_fault(at, code, scale, y, row) for lane, y in placed for at, code in lane.faults],
        names,
    )


def _stretches(placed: Sequence[tuple[Lane, float]], scale: Scale, width: float) -> list[Html]:
    paths: dict[str, list[str]] = {}
    for lane, y in placed:
        for begin, end, phase in stretches(lane):
            x, long = scale.x(begin), max(0.5, scale.x(end) - scale.x(begin))
            paths.setdefault(phase_class(phase), []).append(f"M{x:.1f} {y:.1f}h{long:.1f}")
    return [
        el("path", d="".join(parts), class_=f"lane {kind}", stroke_width=round(width, 2))
        for kind, parts in paths.items()
    ]


def stretches(lane: Lane) -> list[tuple[float, float, str]]:
    """(begin, end, phase) of each stretch in a phase."""
    ends = (*lane.at_s[1:], lane.at_s[-1])
    whole = zip(lane.at_s, ends, lane.phases, strict=True)
    return [(begin, end, phase) for begin, end, phase in whole if phase]


def _tip(lane: Lane, scale: Scale, y: float, row: float) -> Html:
    """Nothing that is seen: the trial's name and seconds for whoever points at its lane."""
    spent: dict[str, float] = {}
    for begin, end, phase in stretches(lane):
        spent[phase] = spent.get(phase, 0.0) + end - begin
    each = ", ".join(f"{one_line(name, 30)} {seconds(took)}" for name, took in spent.items())
    faults = "".join(f"; {one_line(code, 40)} at {seconds(at)}" for at, code in lane.faults)
    x, end = scale.x(lane.at_s[0]), scale.x(lane.at_s[-1])
    return el(
        "rect",
        el("title", f"{one_line(lane.trial, 80)}: {each}{faults}"),
        x=round(x, 1), y=round(y - row / 2, 1), width=round(max(1.0, end - x), 1),
        height=round(row, 2), class_="tip",
    )  # fmt: skip


def _fault(at: float, code: str, scale: Scale, y: float, row: float) -> Html:
    radius = max(1.5, min(3.5, row / 2))
    tip = el("title", f"{one_line(code, 40)} at {seconds(at)}")
    return el("circle", tip, cx=round(scale.x(at), 1), cy=round(y, 1), r=radius, class_="fault")


def _heights(top: float) -> Callable[[float], float]:
    return lambda value: TOP + CURVE_HEIGHT * (1 - value / top)


def _steps(
    readings: Sequence[Reading],
    scale: Scale,
    height: Callable[[float], float],
    value: Callable[[Reading], float],
    kind: str,
) -> Html:
    """Each value from the reading before to its own, filled down to nothing."""
    parts = [
        f"{'M' if n == 0 else 'L'}{scale.x(each.at_s):.1f} {height(value(each)):.1f}"
        for n, each in enumerate(readings)
    ]
    if not readings:
        return Html("")
    line = "".join(parts)
    first, last = scale.x(readings[0].at_s), scale.x(readings[-1].at_s)
    area = f"{line}L{last:.1f} {height(0):.1f}L{first:.1f} {height(0):.1f}Z"
    return Html(
        el("path", d=area, class_=f"area {kind}") + el("path", d=line, class_=f"curve {kind}")
    )


def _barrier(x: float, at: float) -> Html:
    told = f"first wave goes on at {seconds(at)}"
    line = el(
        "line", el("title", told), x1=x, x2=x, y1=TOP, y2=TOP + CURVE_HEIGHT, class_="barrier"
    )
    return el("g", line)


def _curve_svg(
    scale: Scale,
    height: Callable[[float], float],
    top: float,
    unit: str,
    *shapes: Html | list[Html],
) -> Html:
    step = max(1.0, round_step(top, 4)) if top >= 1 else round_step(top, 4)
    values = [n * step for n in range(int(top / step + 1e-9) + 1)]
    ticks = [
        el("text", f"{v:,.6g}", x=LEFT - 8, y=height(v), dy="0.35em", text_anchor="end",
           class_="tick")
        for v in values
    ]  # fmt: skip
    grid = [
        el("line", x1=LEFT, x2=WIDTH - RIGHT, y1=height(v), y2=height(v), class_="grid")
        for v in values
    ]
    name = el("text", unit, x=8, y=TOP + 8, class_="name")
    bottom = TOP + CURVE_HEIGHT
    return svg(bottom + 8, scale.axis(20, bottom), grid, ticks, name, *shapes)
