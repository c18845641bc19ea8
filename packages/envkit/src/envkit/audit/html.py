# SPDX-License-Identifier: Apache-2.0
"""The report as one self-contained page that loads nothing and runs nothing.

Contract: every text is escaped here, whatever it went through before; the page carries a content
policy that forbids scripts, images, frames and every address, so that a trace that got past the
escaping would still do nothing.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator
from html import escape
from typing import Final

from envkit.audit.report import FingerprintRow, Report, ToolRow
from envkit.audit.screen import (
    citation,
    failure_rate,
    headline,
    interval,
    owners,
    plural,
    rewards_line,
)
from envkit.audit.types import Finding

ROWS: Final = 300
"""Findings shown for each detector; the JSON has all."""

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #5c6670; --line: #d9dee3; --paper: #fff;
  --bad: #b42318; --bar: #d9dee3; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --dim: #98a2ad; --line: #343b43;
  --paper: #14181c; --bad: #ff8a7a; --bar: #3d4650; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin-bottom: .3rem; } h2 { font-size: 1.1rem; margin-top: 2.2rem; }
.lead { font-size: 1.1rem; margin: .2rem 0; } .dim, .cite { color: var(--dim); }
.cite { font: 12px/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; color: var(--dim); }
th, td { padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.text { overflow-wrap: anywhere; } .bad { color: var(--bad); }
svg .range { stroke: var(--bar); stroke-width: 8; } svg .point { fill: var(--bad); }
summary { cursor: pointer; padding: .3rem 0; } details table { margin: .4rem 0 1.2rem; }
"""
_DIGEST: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none'; form-action 'none'"
)


def page(report: Report) -> str:
    """The whole document."""
    return "".join(_parts(report))


def _parts(report: Report) -> Iterator[str]:
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>envkit audit</title><style>{_STYLE}</style></head><body>"
    yield "<h1>Audit of recorded runs</h1>"
    yield _p(headline(report), "lead") + _p(rewards_line(report), "lead")
    yield from _unreadable(report)
    yield from _tools(report)
    yield from _fingerprints(report)
    yield from _detectors(report)
    yield from _findings(report)
    yield _p(f"{plural(report.ignored, 'other file')} ignored.", "dim") + "</body></html>\n"


def _p(text: str, style: str) -> str:
    return f'<p class="{style}">{escape(text)}</p>'


def _table(heads: Iterable[str], rows: Iterable[str]) -> str:
    """``heads`` that start with ``#`` are columns of numbers."""
    cells = "".join(
        f'<th class="n">{escape(head[1:])}</th>' if head[:1] == "#" else f"<th>{escape(head)}</th>"
        for head in heads
    )
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _number(value: object) -> str:
    return f'<td class="n">{escape(str(value))}</td>'


def _text(value: str, style: str = "text") -> str:
    return f'<td class="{style}">{escape(value)}</td>'


def _unreadable(report: Report) -> Iterator[str]:
    if report.unreadable:
        yield f'<h2 class="bad">{plural(len(report.unreadable), "file")} could not be read</h2>'
        rows = (f"<tr>{_text(i.file, 'cite')}{_text(i.reason)}</tr>" for i in report.unreadable)
        yield _table(("file", "reason"), rows)


def _tools(report: Report) -> Iterator[str]:
    yield "<h2>Tools</h2>"
    heads = ("tool", "#calls", "#failed", "#rate", "#95 % interval", "0 to 100 %", "#runs")
    yield _table(heads, (_tool(name, row) for name, row in report.tools.items()))


def _tool(name: str, row: ToolRow) -> str:
    return (
        f"<tr>{_text(name)}{_number(row.calls)}{_number(row.failed)}{_number(failure_rate(row))}"
        f"{_number(interval(row))}<td>{_range(row)}</td>{_number(row.runs)}</tr>"
    )


def _range(row: ToolRow) -> str:
    """The interval as a bar with its point, 120 units wide."""
    if row.low is None or row.high is None:
        return ""
    low, point, high = (120 * share for share in (row.low, row.failed / row.calls, row.high))
    return (
        '<svg width="124" height="12" viewBox="-2 0 124 12" aria-hidden="true">'
        f'<line class="range" x1="{low:.1f}" x2="{high:.1f}" y1="6" y2="6"/>'
        f'<circle class="point" cx="{point:.1f}" cy="6" r="3"/></svg>'
    )


def _fingerprints(report: Report) -> Iterator[str]:
    yield "<h2>Errors</h2>"
    yield _p("Numbers, quotes and paths are masked; each line cites its first occurrence.", "dim")
    heads = ("#runs", "#calls", "error", "tool and first occurrence")
    yield _table(heads, (_fingerprint(row) for row in report.fingerprints))


def _fingerprint(row: FingerprintRow) -> str:
    return (
        f"<tr>{_number(row.runs)}{_number(row.count)}{_text(row.text)}"
        f'<td>{escape(row.tool)}<div class="cite">{escape(citation(row))}</div></td></tr>'
    )


def _detectors(report: Report) -> Iterator[str]:
    yield "<h2>Detectors</h2>"
    rows = (
        f"<tr>{_text(name)}{_number(row.findings)}{_number(row.runs)}"
        f"{_number(f'{row.judged}/{report.runs}')}{_text(owners(report, name))}"
        f"{_text(row.needs)}</tr>"
        for name, row in report.detectors.items()
    )
    yield _table(("detector", "#findings", "#runs", "#judged", "owner", "needs"), rows)


def _findings(report: Report) -> Iterator[str]:
    yield "<h2>Findings</h2>"
    for name, row in report.detectors.items():
        if row.findings:
            found = [finding for finding in report.findings if finding.detector == name]
            yield f"<details><summary>{escape(name)}: {row.findings}</summary>"
            yield _table(("owner", "finding", "where"), map(_finding, found[:ROWS]))
            if row.findings > ROWS:
                yield _p(f"{row.findings - ROWS} more in the JSON report.", "dim")
            yield "</details>"


def _finding(finding: Finding) -> str:
    step = "" if finding.step is None else f":{finding.step}"
    return (
        f"<tr>{_text(finding.owner.value)}{_text(finding.evidence)}"
        f"{_text(f'{finding.file}{step}', 'cite')}</tr>"
    )
