# SPDX-License-Identifier: Apache-2.0
"""The plots of a report as inline SVG: timeline, phase times, rewards by task.

Contract: pure; coordinates are in pixels of a 960 wide drawing that scales with the page. Colours
are CSS classes of the page, so that a plot is right on a light and on a dark screen.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from envkit.preflight.markup import Html, el
from envkit.preflight.text import one_line, seconds
from envkit.preflight.types import PHASES, Quantiles
from envkit.trial.record import Attempt, TrialRecord

WIDTH: Final = 960
LEFT: Final = 150
RIGHT: Final = 20
TIMELINE_HEIGHT: Final = 720
"""550 trials get a bar of 1.3 px each; 6 get the tallest one allowed."""
ROW_MAX: Final = 16.0


def timeline(records: Sequence[TrialRecord]) -> Html:
    """One row a trial, one bar a phase, from the first start to the last end."""
    run = sorted((r for r in records if _first(r) > 0), key=lambda r: (_first(r), r.trial_id))
    if not run:
        return Html("")
    begin = _first(run[0])
    end = max(_end(attempt) for record in run for attempt in record.attempts)
    scale = Scale(max(end - begin, 1e-3))
    row = min(ROW_MAX, TIMELINE_HEIGHT / len(run))
    bars = [
        _trial_bars(record, begin, scale, 24 + n * row, row * 0.86) for n, record in enumerate(run)
    ]
    labels = _labels([r.trial_id for r in run], row) if row >= 11 else []
    height = 24 + len(run) * row + 8
    return _svg(height, scale.axis(20, height - 8), bars, labels)


def legend(names: Sequence[str]) -> Html:
    """The colours of the phases that occur."""
    return el(
        "p",
        [el("span", el("i", class_=f"key {phase_class(n)}"), one_line(n, 30)) for n in names],
        class_="legend",
    )


def phase_plot(phases: Mapping[str, Quantiles]) -> Html:
    """p50, p95, p99 and maximum of each phase on one scale."""
    if not phases:
        return Html("")
    scale = Scale(max(row.max for row in phases.values()) or 1e-3)
    rows = [
        _phase_row(name, row, scale, 28 + n * 26) for n, (name, row) in enumerate(phases.items())
    ]
    height = 28 + len(phases) * 26 + 4
    return _svg(height, scale.axis(20, height - 4), rows)


def reward_plot(records: Sequence[TrialRecord]) -> Html:
    """Each task's rewards between 0 and 1, a dot's area by how many; invalid ones at the side."""
    by_task: dict[str, list[TrialRecord]] = {}
    for record in records:
        by_task.setdefault(record.task, []).append(record)
    axis = [_tick(_reward_x(tick), f"{tick:g}", 20, 28 + 34 * len(by_task)) for tick in (0, 0.5, 1)]
    head = el("text", "not valid", x=WIDTH - 60, y=14, class_="tick", text_anchor="middle")
    rows = [_reward_row(task, by_task[task], 44 + n * 34) for n, task in enumerate(sorted(by_task))]
    return _svg(34 + len(by_task) * 34, axis, head, rows)


class Scale:
    """Seconds to pixels, from 0 to a maximum."""

    def __init__(self, top: float) -> None:
        self.top = top

    def x(self, value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * value / self.top

    def axis(self, top: float, bottom: float) -> list[Html]:
        """Four to ten round ticks with their lines."""
        step = _round_step(self.top)
        ticks = [n * step for n in range(int(self.top / step + 1e-9) + 1)]
        return [_tick(self.x(t), f"{t:g} s", top, bottom) for t in ticks]


def phase_class(name: str) -> str:
    return f"p-{name}" if name in PHASES else "p-other"


def _round_step(top: float) -> float:
    raw = top / 5
    power = 10.0 ** math.floor(math.log10(raw))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)


def _tick(x: float, label: str, top: float, bottom: float) -> Html:
    line = el("line", x1=x, x2=x, y1=top, y2=bottom, class_="grid")
    return el("g", line, el("text", label, x=x, y=14, class_="tick", text_anchor="middle"))


def _trial_bars(
    record: TrialRecord, begin: float, scale: Scale, y: float, height: float
) -> list[Html]:
    bars: list[Html] = []
    for attempt in record.attempts:
        at = attempt.started_at - begin
        for name, took in attempt.phases.items():
            tip = f"{one_line(record.trial_id, 60)} {name} {seconds(took)}"
            bars.append(_bar(scale.x(at), scale.x(at + took), y, height, phase_class(name), tip))
            at += took
        if attempt.faults:
            mark = el("circle", cx=scale.x(at) + 4, cy=y + height / 2, r=3, class_="fault")
            bars.append(el("g", mark, el("title", attempt.faults[0].code)))
    return bars


def _bar(x1: float, x2: float, y: float, height: float, kind: str, tip: str) -> Html:
    width = max(0.5, x2 - x1)
    rect = el("rect", el("title", tip), x=x1, y=y, width=width, height=height, class_=kind)
    return rect


def _labels(names: Sequence[str], row: float) -> list[Html]:
    return [_label(name, 24 + n * row + row * 0.43) for n, name in enumerate(names)]


def _label(name: str, middle: float) -> Html:
    shown = name if len(name) <= 20 else f"{name[:10]}…{name[-9:]}"
    text = el("title", name), one_line(shown)
    return el("text", *text, x=LEFT - 8, y=middle, class_="name", text_anchor="end", dy="0.35em")


def _phase_row(name: str, row: Quantiles, scale: Scale, y: float) -> Html:
    tip = f"{name}: p50 {seconds(row.p50)}, p95 {seconds(row.p95)}, max {seconds(row.max)}"
    kind, zero = phase_class(name), scale.x(0)
    parts = [
        el("line", x1=zero, x2=scale.x(row.max), y1=y + 9, y2=y + 9, class_="whisker"),
        _bar(zero, scale.x(row.p99), y + 5, 8, f"{kind} faint", tip),
        _bar(zero, scale.x(row.p95), y + 2, 14, f"{kind} soft", tip),
        _bar(zero, scale.x(row.p50), y, 18, kind, tip),
        el("line", x1=scale.x(row.max), x2=scale.x(row.max), y1=y + 2, y2=y + 16, class_="whisker"),
    ]
    return el("g", _label(name, y + 9), parts)


def _reward_x(value: float) -> float:
    return LEFT + 20 + (WIDTH - LEFT - 180) * min(1.0, max(0.0, value))


def _reward_row(task: str, records: Sequence[TrialRecord], y: float) -> Html:
    valid = Counter(r.reward for r in records if r.reward_valid and r.reward is not None)
    dots = [
        el(
            "circle",
            el("title", f"{count} of {reward:g}"),
            cx=_reward_x(reward),
            cy=y,
            r=_radius(count),
            class_="reward",
        )
        for reward, count in sorted(valid.items())
    ]
    invalid = len(records) - valid.total()
    side = el("text", str(invalid), x=WIDTH - 60, y=y, dy="0.35em", text_anchor="middle")
    line = el("line", x1=_reward_x(0), x2=_reward_x(1), y1=y, y2=y, class_="grid")
    return el("g", _label(task, y), line, dots, side)


def _radius(count: int) -> float:
    return min(15.0, 3.0 + 1.5 * math.sqrt(count))


def _first(record: TrialRecord) -> float:
    return record.attempts[0].started_at if record.attempts else 0.0


def _end(attempt: Attempt) -> float:
    return attempt.started_at + sum(attempt.phases.values())


def _svg(height: float, *children: Html | list[Html] | list[list[Html]]) -> Html:
    box = f"0 0 {WIDTH} {height:.0f}"
    return el("svg", *children, viewBox=box, role="img", xmlns="http://www.w3.org/2000/svg")
