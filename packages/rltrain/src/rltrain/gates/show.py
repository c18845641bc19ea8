# SPDX-License-Identifier: Apache-2.0
"""A check for a person: the verdict, then why, then the figures.

Contract: what a trajectory holds is shown and never obeyed: control and formatting characters of
its text are spelt out.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rltrain.gates.causes import Cause
from rltrain.gates.figures import Bin, Figures, Turn, Worst
from rltrain.gates.report import Report

STYLES: Final = {"PASS": "bold green", "FAIL": "bold red", "NOT MEASURED": "bold yellow"}
BAR: Final = 40
TURNS: Final = 12
"""Rows of the table by turn; what is behind them is one more."""
CONTEXT: Final = 32
"""Characters before a token, and half as many behind it."""
UNSAFE: Final = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def show(report: Report, console: Console) -> None:
    """Print all of it."""
    console.print(_verdict(report), soft_wrap=True)
    for cause in report.causes:
        console.print()
        for indent, line in _cause(cause):
            _print(line, indent, console)
    console.print()
    for name, value in _facts(report):
        console.print(Text.assemble((f"{name:<11}", "dim"), value), soft_wrap=True)
    if report.figures is None:
        return
    bars = _bars(report.histogram, report.options.limit)
    for part in (_table(report.figures), bars, _turns(report.turns)):
        console.print()
        console.print(part)
    console.print()
    console.print(_worst(report.worst))


def _print(line: Text, indent: int, console: Console) -> None:
    """Wrapped at words on a terminal, and elsewhere one line as it is for whoever searches it."""
    if console.is_terminal:
        console.print(Padding(line, (0, 0, 0, indent)))
    else:
        console.print(Text(" " * indent).append_text(line), soft_wrap=True)


def _verdict(report: Report) -> Text:
    told = Text(report.verdict, STYLES[report.verdict])
    if report.verdict == "FAIL":
        told.append("  " + ", ".join(_name(each) for each in report.causes), "bold")
    if report.figures is not None:
        figures, limit = report.figures, report.options.limit
        over = figures.mean > limit
        told.append("  mean difference ")
        told.append(f"{figures.mean:.3g}", "bold red" if over else "bold")
        told.append(f" nats over {figures.tokens:,} tokens; the limit is {limit:g}")
    elif report.causes:
        told.append("  nothing was scored")
    return told


def _cause(cause: Cause) -> Iterator[tuple[int, Text]]:
    yield 0, Text.assemble((f"{_name(cause)}: ", "bold red"), _safe(cause.says))
    for line in cause.evidence:
        yield 2, Text(_safe(line))
    if cause.todo:
        yield 2, Text.assemble(("→ ", "bold"), _safe(cause.todo))


def _name(cause: Cause) -> str:
    return cause.code.replace("_", " ")


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    options, scale = report.options, report.scale
    yield "store", _safe(str(options.store))
    yield "policy", _safe(f"{options.policy}, scored in {options.dtype}")
    if scale is not None:
        yield "rows", f"{scale.scored_rows:,} of {scale.rows:,} scored"
        versions = ", ".join(f"{_named(v)} ({n:,})" for v, n in scale.comparable.items())
        yield "version", f"{_named(scale.version)}; comparable tokens by version: {versions or '-'}"
    for note in report.notes:
        yield "note", note


def _named(version: int) -> str:
    return str(version) if version >= 0 else "unknown"


def _table(figures: Figures) -> Table:
    table = _grid("p50", "p90", "p99", "max", "mean l - μ", "KL", first="|l - μ|")
    names = ("p50", "p90", "p99", "most", "signed", "kl")
    values = (_short(getattr(figures, name)) for name in names)
    table.add_row("", *values)
    return table


def _bars(bins: Sequence[Bin], limit: float) -> Table:
    table = Table.grid(padding=(0, 2))
    for side in ("right", "right", "left"):
        table.add_column(justify=side)
    whole, most = sum(each.tokens for each in bins), max(each.tokens for each in bins)
    last = max(place for place, each in enumerate(bins) if each.tokens)
    for each in bins[: last + 1]:
        bar = "█" * -(-BAR * each.tokens // most)
        share = f" {100 * each.tokens / whole:.1f} %"
        colour = "red" if each.low >= limit else "cyan"
        table.add_row(_range(each), f"{each.tokens:,}", Text.assemble((bar, colour), share))
    return table


def _range(each: Bin) -> str:
    return f"< {each.high:g}" if each.high != float("inf") else f"≥ {each.low:g}"


def _turns(turns: Sequence[Turn]) -> Table:
    table = _grid("tokens", "mean", "p99", "mean l - μ", first="turn")
    for each in turns[:TURNS]:
        mine = each.figures
        values = (_short(value) for value in (mine.mean, mine.p99, mine.signed))
        table.add_row(str(each.turn), f"{mine.tokens:,}", *values)
    if rest := turns[TURNS:]:
        tokens = sum(each.figures.tokens for each in rest)
        mean = sum(each.figures.mean * each.figures.tokens for each in rest) / tokens
        table.add_row(f"{rest[0].turn} and later", f"{tokens:,}", _short(mean), "", "")
    return table


def _grid(*columns: str, first: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(first)
    for name in columns:
        table.add_column(name, justify="right")
    return table


def _worst(tokens: Sequence[Worst]) -> Table:
    table = _grid("trainer's", "turn", "place", first="recorded")
    table.add_column(Text("worst tokens".rjust(CONTEXT)), no_wrap=True)
    table.add_column("trajectory", style="dim", no_wrap=True)
    for each in tokens:
        before, token, after = (_safe(text) for text in (each.before, each.token, each.after))
        shown = Text.assemble(
            before[-CONTEXT:].rjust(CONTEXT), (token or "∅", "reverse"), after[: CONTEXT // 2]
        )
        numbers = (f"{each.rollout:.3f}", f"{each.trainer:.3f}", str(each.turn), str(each.place))
        table.add_row(*numbers, shown, _safe(each.trajectory_id))
    return table


def _short(value: float) -> str:
    return f"{value:.3g}"


def _safe(text: str) -> str:
    """Everything spelt out that a terminal would obey."""
    return "".join(
        json.dumps(char)[1:-1] if unicodedata.category(char) in UNSAFE else char for char in text
    )
