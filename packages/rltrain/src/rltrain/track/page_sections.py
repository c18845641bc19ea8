# SPDX-License-Identifier: Apache-2.0
"""The sections of the page: tiles, one section a topic, settings, manifest.

Contract: built only of `envkit.preflight.markup.el`, so whatever a manifest holds is text. What
was not measured says so in one line; there is no empty drawing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from envkit.preflight.markup import Child, Html, el
from envkit.preflight.page_parts import Section, bar, folded, note, table
from envkit.preflight.text import percent
from rltrain.track.catalogue import Lines, Parts, Topic, names_of
from rltrain.track.catalogue import topics as catalogue
from rltrain.track.chart import Chart, Series, drawn
from rltrain.track.run import MANIFEST, SETTINGS, Run
from rltrain.track.stack import Stack, stacked
from rltrain.track.summary import (
    HEALTHY,
    NOT_MEASURED,
    PARTS,
    Extent,
    Summary,
    doubt,
    duration,
    entropy_line,
    figure,
)

ROWS: Final = 200
"""Of a table at most; all of them are in the run's numbers."""


def tiles(summary: Summary) -> Html:
    """The run in six figures."""
    reward, difference = summary.reward, summary.logprob_difference
    last = summary.last_step
    steps = "steps" if last in (None, summary.steps) else f"steps, the last one {last}"
    each = [
        _tile(f"{summary.steps:,}", steps),
        _tile(
            figure(reward.mean) if reward else NOT_MEASURED,
            f"reward at step {reward.step}, {doubt(reward)}" if reward else "reward",
        ),
        _tile(entropy_line(summary.entropy), "entropy, first → last"),
        _tile(
            figure(difference.last) if difference else NOT_MEASURED,
            f"log-prob difference, {_worst(difference)}",
            "bad" if difference and difference.last >= HEALTHY else "",
        ),
        _tile(
            figure(summary.gradient_norm.worst) if summary.gradient_norm else NOT_MEASURED,
            f"gradient norm, {_at(summary.gradient_norm)}",
        ),
        _tile(duration(summary.seconds), "total time"),
    ]
    return el("section", each, class_="tiles")


def topics(run: Run, summary: Summary) -> Iterator[Section]:
    """What every step told."""
    names = {name for step in run.history.steps for name in step.numbers}
    for topic in catalogue(names):
        parts: list[Child] = [*_drawings(topic, run)]
        if topic.title == "Log-prob difference" and summary.logprob_difference:
            parts.append(note(_unhealthy(summary, summary.logprob_difference)))
        if topic.title == "Time split" and summary.seconds is not None:
            parts.append(_totals(run, summary.seconds))
        yield Section(topic.title, (*parts, *_figures(topic, run)))


def settings(run: Run) -> Section:
    """What the run was told."""
    if not run.settings:
        return Section("Settings", (note(f"there is no {SETTINGS}"),))
    return Section("Settings", (folded(SETTINGS, el("pre", run.settings)),))


def manifest(run: Run) -> Section:
    """What the run wrote down of itself."""
    if not run.manifest:
        return Section("Manifest", (note(f"there is no {MANIFEST}, or nothing is in it"),))
    rows: list[list[Child]] = [[name, _value(value)] for name, value in run.manifest.items()]
    return Section("Manifest", (table(["name", "value"], rows),))


def _tile(value: str, name: str, kind: str = "") -> Html:
    return el("div", el("b", value, class_=kind), el("span", name))


def _worst(extent: Extent | None) -> str:
    return f"last; worst {figure(extent.worst)} at step {extent.worst_step}" if extent else "last"


def _at(extent: Extent | None) -> str:
    return f"worst, at step {extent.worst_step}" if extent else "worst"


def _unhealthy(summary: Summary, difference: Extent) -> str:
    return f"{HEALTHY} or more in {summary.unhealthy_steps} of {difference.steps} measured steps."


def _drawings(topic: Topic, run: Run) -> Iterator[Child]:
    """The drawings of what was measured, and a line on what was not."""
    there = [each for each in topic.drawings if any(map(run.has, each.names))]
    absent = [each.title for each in topic.drawings if each not in there]
    if not there:
        yield note(NOT_MEASURED)
        return
    yield el("div", [_drawing(each, run) for each in there], class_="charts")
    if absent:
        yield note(f"{NOT_MEASURED}: {', '.join(absent)}")
    if topic.meaning:
        yield note(topic.meaning)


def _drawing(drawing: Lines | Parts, run: Run) -> Html:
    return _stack(drawing, run) if isinstance(drawing, Parts) else _chart(drawing, run)


def _chart(drawing: Lines, run: Run) -> Html:
    band = drawing.band and (run.series(drawing.band[0]), run.series(drawing.band[1]))
    return drawn(
        Chart(
            title=drawing.title,
            unit=drawing.unit,
            steps=run.steps,
            series=_series(drawing, run, 100 if drawing.percent else 1),
            band=band,
            bound=drawing.bound,
            zero=drawing.zero,
            wide=drawing.wide,
            height=130 if drawing.wide and not band else 190,
        )
    )


def _stack(drawing: Parts, run: Run) -> Html:
    return stacked(
        Stack(
            title=drawing.title,
            unit=drawing.unit,
            steps=run.steps,
            parts=_series(drawing, run, 1),
            shares=drawing.shares,
        )
    )


def _series(drawing: Lines | Parts, run: Run, factor: int) -> list[Series]:
    return [
        Series(
            name=called,
            values=[None if value is None else factor * value for value in run.series(name)],
            colour=colour,
        )
        for (name, called), colour in zip(drawing.names.items(), drawing.colours, strict=False)
    ]


def _totals(run: Run, total: float) -> Html:
    """Seconds of the run by part."""
    rows: list[list[Child]] = []
    for n, part in enumerate(PARTS):
        spent = [value for value in run.series(f"seconds/{part}") if value is not None]
        if spent:
            whole = sum(spent)
            share = percent(round(whole / total, 3)) if total > 0 else ""
            cells = [bar(whole, total, f"c{n}"), share, duration(whole)]
            rows.append([part, *cells, duration(whole / len(run.steps))])
    return table(["part", "", "share", "in total", "a step"], rows, (2, 3, 4)) if rows else Html("")


def _figures(topic: Topic, run: Run) -> Iterator[Html]:
    """The numbers themselves, folded."""
    names = [name for each in topic.drawings for name in names_of(each)]
    columns = {name: run.series(name) for name in names if run.has(name)}
    if not columns:
        return
    shown = _thinned(len(run.steps))
    rows: list[list[Child]] = [
        [run.steps[n], *(_cell(values[n]) for values in columns.values())] for n in shown
    ]
    left = f", {len(shown)} of {len(run.steps)} steps" if len(shown) < len(run.steps) else ""
    body = table(["step", *columns], rows, range(len(columns) + 1))
    yield folded(f"as figures{left}", el("div", body, class_="figures"))


def _thinned(steps: int) -> Sequence[int]:
    """Rows evenly apart, the last one among them."""
    apart = max(1, -(-steps // ROWS))
    return range((steps - 1) % apart, steps, apart)


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.5g}"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
