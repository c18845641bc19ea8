# SPDX-License-Identifier: Apache-2.0
"""A run as one HTML page that needs no network, no script and no other file.

Contract: a content security policy forbids the page to load or run anything, whatever is in it.
It shows nothing that the run's directory does not hold, so that it can be made again from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Final

from envkit.preflight.markup import Html, el
from envkit.preflight.page_parts import Section, note
from rltrain.track.chart import HALF, LEFT, RIGHT
from rltrain.track.page_sections import manifest, settings, tiles, topics
from rltrain.track.run import Run
from rltrain.track.scale import PIXELS
from rltrain.track.summary import Summary

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
DENSE: Final = (
    "Where steps are closer together than a line can show, the line is their mean and the shade "
    "behind it goes from the lowest to the highest."
)
TOLD: Final = ("policy", "trajectories", "started", "seed", "rltrain")
"""What of the manifest stands at the top."""


def to_html(run: Run, summary: Summary) -> str:
    """The whole page."""
    style = files("rltrain.track").joinpath("page.css").read_text("utf-8")
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("title", f"rltrain report: {run.path.name}"),
        el("style", Html(style)),
    )
    sections = [*topics(run, summary), settings(run), manifest(run)]
    shown = [section.html() for section in sections]
    body = el("main", _header(run), tiles(summary), _contents(sections), shown)
    return f"<!doctype html>\n{el('html', head, el('body', body), lang='en')}\n"


def _header(run: Run) -> Html:
    told = [f"{name} {run.manifest[name]}" for name in TOLD if name in run.manifest]
    remark = note(f"metrics.jsonl: {run.history.remark}.") if run.history.remark else ""
    dense = note(DENSE) if len(run.steps) > 2 * (HALF - LEFT - RIGHT) / PIXELS else ""
    title = el("h1", "Run ", el("code", run.path.name))
    return el("header", title, note(" · ".join(told)) if told else "", remark, dense)


def _contents(sections: Sequence[Section]) -> Html:
    links = [el("a", each.title, href=f"#{each.anchor}") for each in sections]
    return el("nav", links, aria_label="Contents")
