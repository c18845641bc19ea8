# SPDX-License-Identifier: Apache-2.0
"""A plan as one HTML page that needs no network, no script and no other file.

Contract: as `rltrain.track.page`: a content security policy forbids it to load or run anything,
and everything in it is text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Final

from envkit.preflight.markup import Child, Html, el
from envkit.preflight.page_parts import bar, folded, note, table
from rltrain.plan.advice import advice
from rltrain.plan.assumptions import flat
from rltrain.plan.plan import Plan, Row
from rltrain.plan.show import HEAD, TOLD, cells, head
from rltrain.track.page import POLICY

BARS: Final[Sequence[tuple[str, str, Callable[[Plan, Row], float]]]] = (
    ("Steps an hour", "c0", lambda plan, row: plan.steps_per_h(row)),
    ("Trials under way", "c2", lambda _, row: row.went.running),
    ("Trainer at work, %", "c3", lambda _, row: 100 * row.went.training),
    ("Trainer waits for a batch, %", "c1", lambda _, row: 100 * row.went.waiting),
)
"""Drawings: what, its colour, its value."""


def to_html(plan: Plan) -> str:
    """The whole page."""
    style = files("rltrain.track").joinpath("page.css").read_text("utf-8")
    title = f"rltrain plan: {plan.asked.name}"
    top = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("title", title),
        el("style", Html(style)),
    )
    body = el("main", _header(plan), _tiles(plan), _rows(plan), _bars(plan), _assumed(plan))
    return f"<!doctype html>\n{el('html', top, el('body', body), lang='en')}\n"


def _header(plan: Plan) -> Html:
    lines = [note(line) for line in head(plan)]
    title = el("h1", "Plan of ", el("code", plan.asked.name))
    return el("header", title, el("p", el("b", advice(plan))), *lines)


def _tiles(plan: Plan) -> Html:
    each = [
        (f"{plan.concurrency}", "trials at once, by the recipe"),
        (f"{plan.own.kv.ceiling}", f"held by KV, {plan.interval.low} to {plan.interval.high}"),
        (f"{plan.staleness}", "under way, by staleness"),
        (f"{plan.steps_per_h(plan.own):.2f}", "steps an hour"),
        (f"{plan.own.went.training:.0%}", "of its time the trainer works"),
        (f"{plan.own.went.bias:+.0%}", "length of the first ten steps"),
    ]
    tiles = [el("div", el("b", value), el("span", name)) for value, name in each]
    return el("section", tiles, class_="tiles")


def _rows(plan: Plan) -> Html:
    rows: list[list[Child]] = [list(cells(plan, row)) for row in plan.rows]
    meaning = "; ".join(f"{name}: {what}" for name, what in TOLD.items())
    body = table(HEAD, rows, range(1, len(HEAD)))
    return el("section", el("h2", "Splits"), body, note(f"{meaning}."))


def _bars(plan: Plan) -> Html:
    drawings = [_drawing(plan, *each) for each in BARS]
    return el("section", el("h2", "Beside each other"), el("div", drawings, class_="charts"))


def _drawing(plan: Plan, name: str, colour: str, of: Callable[[Plan, Row], float]) -> Html:
    values = [of(plan, row) for row in plan.rows]
    most = max(values)
    rows: list[list[Child]] = [
        [row.split.name, bar(value, most, colour), f"{value:.1f}"]
        for row, value in zip(plan.rows, values, strict=True)
    ]
    return el("figure", el("figcaption", name), table(["", "", ""], rows, (2,)), class_="half")


def _assumed(plan: Plan) -> Html:
    fixed = plan.asked.fixed
    rows: list[list[Child]] = [
        [name, "reckoned" if value is None else str(value).lower(), "set" if name in fixed else ""]
        for name, value in flat(plan.asked.told).items()
    ]
    spread = note(f"Varied for the interval: {'; '.join(plan.interval.spread) or 'nothing'}.")
    figures = folded("assumptions", table(["name", "value", ""], rows))
    return el("section", el("h2", "What it rests on"), spread, figures)
