# SPDX-License-Identifier: Apache-2.0
"""The report for a terminal: what matters on the first screen, each claim with its citation.

Texts of a report are already free of control characters; here they are shown as `Text`, so that
nothing in them is read as markup.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from envkit.audit.examine import mean
from envkit.audit.report import FingerprintRow, Report, ToolRow
from envkit.audit.types import Owner

TOP: Final = 15
"""Fingerprints on the first screen."""


def show(report: Report, console: Console) -> None:
    """Print the report."""
    for part in _parts(report):
        console.print(part, soft_wrap=isinstance(part, Text))


def _parts(report: Report) -> Iterator[RenderableType]:
    if not report.runs:  # tables of nothing would hide why there is nothing
        yield from _files(report)
        return
    yield Text(headline(report), style="bold")
    yield Text(rewards_line(report))
    if report.tools:
        yield Text()
        yield _tools(report)
    if report.fingerprints:
        yield Text()
        yield from _fingerprints(report)
    yield Text()
    yield _detectors(report)
    yield Text()
    yield from _files(report)


def headline(report: Report) -> str:
    """``62 runs, 64.5 % with an error that is not the model's, 6 polluted zeros, …``"""
    unknown = report.foreign - report.runs_with(*_FOREIGN)
    doubt = f" ({unknown} of them of unknown owner only)" if unknown else ""
    return (
        f"{plural(report.runs, 'run')}, {percent(report.foreign_share)} with an error that is not "
        f"the model's{doubt}, {plural(report.found('polluted-zero'), 'polluted zero')}, "
        f"{report.found('missing-verdict')} without a verdict"
    )


_FOREIGN: Final = tuple(owner for owner in Owner if owner not in (Owner.MODEL, Owner.UNKNOWN))


def rewards_line(report: Report) -> str:
    """Mean reward as recorded, and over the rewards that nothing speaks against."""
    recorded, valid = report.rewards.recorded, report.rewards.valid
    if not recorded:
        return "no reward is on record"
    return (
        f"mean reward {_mean(recorded)} as recorded (n={len(recorded)}), "
        f"{_mean(valid)} over valid rewards (n={len(valid)})"
    )


def _mean(values: tuple[float, ...]) -> str:
    value = mean(values)
    return "n/a" if value is None else f"{value:.3f}"


def percent(share: float | None) -> str:
    """``64.5 %``; ``n/a`` where nothing was measured."""
    return "n/a" if share is None else f"{100 * share:.1f} %"


def plural(count: int, noun: str) -> str:
    """``1 run``, ``2 runs``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _table(title: str, *columns: str) -> Table:
    """A plain table; the first column and owners are text, the others are numbers."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for index, column in enumerate(columns):
        text = index == 0 or column == "owner"
        table.add_column(column, justify="left" if text else "right", overflow="fold")
    return table


def _tools(report: Report) -> Table:
    table = _table("Tools", "tool", "calls", "failed", "rate", "95 % interval", "runs")
    for name, row in report.tools.items():
        cells = (str(row.calls), str(row.failed), failure_rate(row), interval(row), str(row.runs))
        table.add_row(Text(name), *cells)
    return table


def failure_rate(row: ToolRow) -> str:
    """Failures as a share of calls."""
    return percent(row.failed / row.calls if row.calls else None)


def interval(row: ToolRow) -> str:
    """The Wilson interval of the failure rate."""
    if row.low is None or row.high is None:
        return "n/a"
    return f"{100 * row.low:.1f}-{100 * row.high:.1f} %"


def _fingerprints(report: Report) -> Iterator[Text]:
    yield Text("Errors, in most runs first (runs, calls)", style="bold")
    for row in report.fingerprints[:TOP]:
        yield Text(f"{row.runs:>4} {row.count:>5}  {row.text}")
        yield Text(f"            {row.tool}  {citation(row)}", style="dim")
    rest = len(report.fingerprints) - TOP
    if rest > 0:
        yield Text(f"            and {plural(rest, 'more kind')} in --json and --html", style="dim")


def citation(row: FingerprintRow) -> str:
    """``file:step``."""
    return f"{row.example.file}:{row.example.step}"


def _detectors(report: Report) -> Table:
    table = _table("Detectors", "detector", "findings", "runs", "judged", "owner")
    for name, row in report.detectors.items():
        judged = f"{row.judged}/{report.runs}"
        table.add_row(name, str(row.findings), str(row.runs), judged, owners(report, name))
    return table


def owners(report: Report, detector: str) -> str:
    """``harness 160, unknown 58``."""
    counts: dict[str, int] = {}
    for finding in report.findings:
        if finding.detector == detector:
            counts[finding.owner.value] = counts.get(finding.owner.value, 0) + 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{owner} {count}" for owner, count in ordered) or "-"


def _files(report: Report) -> Iterator[Text]:
    if report.ignored:
        yield Text(f"{plural(report.ignored, 'other file')} ignored", style="dim")
    if report.unreadable:
        yield Text(f"{plural(len(report.unreadable), 'file')} could not be read", style="bold red")
    for item in report.unreadable:
        yield Text(f"  {item.file}: {item.reason}")
