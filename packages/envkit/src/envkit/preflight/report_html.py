# SPDX-License-Identifier: Apache-2.0
"""A report as one HTML page that needs no network, no script and no other file.

Contract: built only of ``markup.el``, so whatever came from a box is text; a content security
policy forbids the page to load or run anything even so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Final

from envkit.preflight import change_views, estimate, ramp_views
from envkit.preflight.gate import rate_line
from envkit.preflight.knee import knee_line
from envkit.preflight.markup import Child, Html, el
from envkit.preflight.plots import legend, phase_plot, reward_plot, timeline
from envkit.preflight.report_text import NOT_LIVE, cpu_rows, history, reward_line
from envkit.preflight.text import percent, seconds
from envkit.preflight.types import FailedTrial, Plan, Report

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
    body = el("body", el("main", _header(report), list(_sections(report))))
    return f"<!doctype html>\n{el('html', head, body, lang='en')}\n"


def _header(report: Report) -> Html:
    label = report.verdict.value.replace("_", " ")
    reasons = el("ul", [el("li", line) for line in report.why])
    badge = el(
        "h1", el("span", label, class_=f"badge {report.verdict.value.lower()}"), " preflight"
    )
    told = [_note(line) for line in history(report)]
    return el("header", badge, reasons, _plan(report.plan) if report.plan else "", told)


def _plan(plan: Plan) -> Html:
    return el(
        "p",
        el("code", str(plan.source)),
        f" · agent {plan.agent} · env {plan.env} · concurrency {plan.concurrency} "
        f"· seed {plan.seed} · fault rate allowed {percent(plan.max_fault_rate)}",
        class_="dim",
    )


def _sections(report: Report) -> Iterator[Html]:
    if report.attempts:
        yield _tiles(report)
        yield from _measured(report)
        yield _section("Rewards by task", reward_plot(report.records), _note(_reward(report)))
    if report.faults:
        yield _section(
            "Faults by owner and class", _faults(report), _note(rate_line(report.fault_rate))
        )
    if report.quarantine:
        rows = [
            [each.task, el("code", reason.code), reason.message]
            for each in report.quarantine
            for reason in each.reasons
        ]
        yield _section("Not to be trained on", _table(["task", "reason", "what was seen"], rows))
    if report.failed:
        few = len(report.failed) <= OPEN_UP_TO
        yield _section("Failed trials", [_failed(trial, few) for trial in report.failed])
    if report.leaks:
        rows = [[leak.kind, el("code", leak.what)] for leak in report.leaks]
        yield _section("Left behind", _table(["kind", "what"], rows))
    if report.phases:
        key = legend(list(report.phases))
        yield _section("Phases over time", key, timeline(report.records))
        yield _section(
            "Seconds by phase", phase_plot(report.phases), _note(BAR_NOTE), _phases(report)
        )
    if report.cpu_by_phase:
        note = CPU_NOTE if report.cpu_is_live else f"{CPU_NOTE} There are {NOT_LIVE}."
        yield _section("CPU seconds", _cpu(report), _note(note))


def _measured(report: Report) -> Iterator[Html]:
    """What was asked for beside the run itself."""
    if report.ramp:
        levels = [ramp_views.cells(level) for level in report.ramp.levels]
        plot, line = ramp_views.plot(report.ramp), knee_line(report.ramp)
        yield _section("Ramp", plot, _note(line), _table(list(ramp_views.HEAD), levels))
    if report.comparison:
        rows = [change_views.cells(change) for change in report.comparison.changes]
        note = _note(f"{report.comparison.baseline}. {CHANCE_NOTE}")
        yield _section("Against the baseline", _table(list(change_views.HEAD), rows), note)
    if report.estimate:
        yield _section("The real run", [el("p", line) for line in estimate.lines(report.estimate)])


CHANCE_NOTE: Final = (
    "Medians, means of rewards, shares of attempts. Only what differs beyond chance, all measures "
    "taken together, is better or worse; a machine that was busier on that day differs as well."
)
OPEN_UP_TO: Final = 3
"""Failed trials whose logs are shown without a click."""
CPU_NOTE: Final = (
    "The same seconds by phase and by part, as far as a control group or a process shows them; "
    "shared is what worked for all trials, importing included."
)
BAR_NOTE: Final = "Bars end at p50 (full), p95 and p99 (fainter); the line ends at the maximum."


def _tiles(report: Report) -> Html:
    stall, memory = report.loop_stall_ms, report.peak_memory_mib
    figures = {
        "trials": str(report.trials),
        "attempts": str(report.attempts),
        "live at the peak": str(report.peak_live),
        "wall clock": seconds(report.seconds),
        "mean reward": "n/a" if report.rewards.mean is None else f"{report.rewards.mean:.3f}",
        "fault rate": percent(report.fault_rate.value),
        "CPU": f"{sum(report.cpu_s.values()):.1f} s",
        "peak memory": "n/a" if memory is None else f"{memory:,.0f} MiB",
        "loop stall p99 / max": f"{stall.p99:.0f} / {stall.max:.0f} ms" if stall else "n/a",
    }
    tiles = [el("div", el("b", value), el("span", name)) for name, value in figures.items()]
    return el("section", tiles, class_="tiles")


def _reward(report: Report) -> str:
    return reward_line(report.rewards, report.trials)


def _faults(report: Report) -> Html:
    most = max(row.count for row in report.faults)
    rows: list[list[Child]] = [
        [
            row.owner,
            el("code", row.code),
            el("i", class_="bar", style=f"width:{round(100 * row.count / most)}px"),
            row.count,
            row.retried,
            f"{row.example_trial} in {row.example_phase}: {row.example_message}",
        ]
        for row in sorted(report.faults, key=lambda row: (row.owner, -row.count))
    ]
    return _table(["owner", "class", "", "count", "retried", "example"], rows)


def _failed(trial: FailedTrial, is_open: bool) -> Html:
    summary = el("summary", el("b", trial.trial_id), f" {trial.why}")
    again = el("p", "Run it again: ", el("code", trial.reproduce))
    where = el("p", "Files: ", el("code", str(trial.trial_dir)))
    log = el("pre", "\n".join(trial.log_tail)) if trial.log_tail else _note("It wrote no log.")
    unfolded = {"open": ""} if is_open else {}
    return el("details", summary, again, where, log, **unfolded)


def _phases(report: Report) -> Html:
    rows: list[list[Child]] = [
        [name, row.n, *(seconds(v) for v in (row.p50, row.p95, row.p99, row.max))]
        for name, row in report.phases.items()
    ]
    return _table(["phase", "n", "p50", "p95", "p99", "max"], rows)


def _cpu(report: Report) -> Html:
    rows: list[list[Child]] = [
        [kind, name, "" if a_trial is None else f"{a_trial:.3f}", f"{spent:.1f}"]
        for kind, name, spent, a_trial in cpu_rows(report)
    ]
    return _table(["by", "name", "a trial", "of the run"], rows)


def _section(title: str, *children: Child) -> Html:
    return el("section", el("h2", title), *children)


def _note(text: str) -> Html:
    return el("p", text, class_="dim")


def _table(head: list[str], rows: Sequence[Sequence[Child]]) -> Html:
    top = el("tr", [el("th", name) for name in head])
    body = [el("tr", [el("td", cell) for cell in row]) for row in rows]
    return el("div", el("table", el("thead", top), el("tbody", body)), class_="scroll")
