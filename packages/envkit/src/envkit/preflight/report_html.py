# SPDX-License-Identifier: Apache-2.0
"""A report as one HTML page that needs no network, no script and no other file.

Contract: built only of ``markup.el``, so whatever came from a box is text; a content security
policy forbids the page to load or run anything even so. It shows nothing that ``report.json`` does
not hold, so that it can be made again from there (`envkit.preflight.report_read`).
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Final

from envkit.preflight.markup import Html, el
from envkit.preflight.page_figures import asked_for, figures, tiles
from envkit.preflight.page_parts import Section, note
from envkit.preflight.page_problems import problems
from envkit.preflight.report_text import history
from envkit.preflight.text import percent
from envkit.preflight.types import Plan, Report

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def to_html(report: Report) -> str:
    """The whole page."""
    style = files("envkit.preflight").joinpath("report.css").read_text("utf-8")
    title = f"envkit preflight: {report.verdict.value.replace('_', ' ')}"
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("title", title),
        el("style", Html(style)),
    )
    sections = [*problems(report), *asked_for(report)]
    sections += figures(report) if report.attempts else ()
    body = el(
        "main",
        _header(report),
        tiles(report) if report.attempts else "",
        _contents(sections),
        [section.html() for section in sections],
    )
    return f"<!doctype html>\n{el('html', head, el('body', body), lang='en')}\n"


def _header(report: Report) -> Html:
    label = report.verdict.value.replace("_", " ")
    reasons = el("ul", [el("li", line) for line in report.why])
    badge = el(
        "h1", el("span", label, class_=f"badge {report.verdict.value.lower()}"), " preflight"
    )
    told = [note(line) for line in history(report)]
    return el("header", badge, reasons, _plan(report.plan) if report.plan else "", told)


def _plan(plan: Plan) -> Html:
    return el(
        "p",
        el("code", str(plan.source)),
        f" · agent {plan.agent} · env {plan.env} · concurrency {plan.concurrency} "
        f"· seed {plan.seed} · fault rate allowed {percent(plan.max_fault_rate)}",
        class_="dim",
    )


def _contents(sections: Sequence[Section]) -> Html:
    if len(sections) < 2:
        return Html("")
    links = [el("a", each.title, href=f"#{each.anchor}") for each in sections]
    return el("nav", links, aria_label="Contents")
