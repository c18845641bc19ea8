# SPDX-License-Identifier: Apache-2.0
"""A report as Markdown, as one pastes it into a pull request.

Contract: text from outside cannot format, link, mention or break a table: it stands in code spans
without the characters that end one. Long lists are cut and say so; the files hold all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from envkit.preflight import change_views, estimate, ramp_views
from envkit.preflight.gate import rate_line
from envkit.preflight.knee import knee_line
from envkit.preflight.report_text import reward_line
from envkit.preflight.text import count, one_line, seconds
from envkit.preflight.types import FailedTrial, Report

SHOWN: Final = 10
"""Failed trials; a comment of thousands of lines is read by nobody."""


def to_markdown(report: Report) -> str:
    """The whole text."""
    return "\n".join(line for part in _parts(report) for line in (*part, ""))


def _parts(report: Report) -> Iterator[list[str]]:
    label = report.verdict.value.replace("_", " ")
    yield [f"## envkit preflight: {label}"]
    yield [f"- {code(line, 1000)}" for line in report.why]
    if report.attempts:
        yield list(_figures(report))
    if report.ramp:
        rows = [ramp_views.cells(level) for level in report.ramp.levels]
        yield ["### Ramp", "", *table(ramp_views.HEAD, rows), "", knee_line(report.ramp)]
    if report.comparison:
        rows = [[code(c) for c in change_views.cells(each)] for each in report.comparison.changes]
        head = f"### Against {code(report.comparison.baseline, 400)}"
        yield [head, "", *table(change_views.HEAD, rows)]
    if report.estimate:
        yield ["### The real run", "", *(f"- {line}" for line in estimate.lines(report.estimate))]
    if report.faults:
        yield ["### Faults", "", *_faults(report)]
    if report.quarantine:
        yield ["### Not to be trained on", "", *_quarantine(report)]
    if report.failed:
        yield ["### Failed trials", "", *_failed(report.failed)]
    if report.phases:
        yield [
            "<details><summary>Seconds by phase</summary>",
            "",
            *_phases(report),
            "",
            "</details>",
        ]


def _figures(report: Report) -> Iterator[str]:
    plan = report.plan
    if plan is not None:
        yield (
            f"agent {code(plan.agent)}, env {code(plan.env)}, concurrency {plan.concurrency}, "
            f"seed {plan.seed}"
        )
        yield ""
    memory = f", {report.peak_memory_mib:,.0f} MiB" if report.peak_memory_mib is not None else ""
    yield (
        f"- {count(report.trials, 'trial')}, {count(report.attempts, 'attempt')} in "
        f"{seconds(report.seconds)}: {report.peak_live} live at the peak{memory}, "
        f"{sum(report.cpu_s.values()):.1f} CPU s"
    )
    yield f"- reward {reward_line(report.rewards, report.trials)}"
    yield f"- faults {rate_line(report.fault_rate)}"


def _phases(report: Report) -> list[str]:
    rows = [
        [code(name), row.n, *(seconds(v) for v in (row.p50, row.p95, row.p99, row.max))]
        for name, row in report.phases.items()
    ]
    return table(["phase", "n", "p50", "p95", "p99", "max"], rows)


def _faults(report: Report) -> list[str]:
    rows = [
        [code(row.code), row.owner, row.count, row.retried, code(row.example_message, 200)]
        for row in report.faults
    ]
    return table(["fault", "owner", "count", "retried", "example"], rows)


def _quarantine(report: Report) -> list[str]:
    rows = [
        [code(each.task), code(reason.code), code(reason.message, 300)]
        for each in report.quarantine
        for reason in each.reasons
    ]
    return table(["task", "reason", "what was seen"], rows)


def _failed(trials: Sequence[FailedTrial]) -> Iterator[str]:
    for trial in trials[:SHOWN]:
        yield f"- {code(trial.trial_id)}: {code(trial.why, 400)}  "
        yield f"  again: {code(trial.reproduce, 1000)}"
    if len(trials) > SHOWN:
        yield f"- and {len(trials) - SHOWN} more, in the report's files"


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """A table's lines; cells must be safe already."""
    bars = [" | ".join(str(cell) for cell in row) for row in (head, ["---"] * len(head), *rows)]
    return [f"| {bar} |" for bar in bars]


def code(text: object, limit: int = 100) -> str:
    """Text from outside as a code span: nothing in it is markup, and no bar ends a cell."""
    plain = one_line(text, limit).replace("`", "'").replace("|", "¦")
    return f"`{plain}`" if plain else ""
