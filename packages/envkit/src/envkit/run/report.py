# SPDX-License-Identifier: Apache-2.0
"""A run for a person and as JSON: what the trials came to, and what their trajectories did.

Contract: a mean reward stands with its fault share and with its bounds, all invalid as 0 and as 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from envkit.preflight.report_json import to_json
from envkit.preflight.report_text import print_report
from envkit.preflight.text import count, one_line, percent, seconds
from envkit.preflight.types import Quantiles, Report
from envkit.run.figures import Figures

DAMAGE_SHOWN: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """The whole result of a run."""

    trials: Report
    figures: Figures = field(default_factory=Figures)
    damage: tuple[str, ...] = ()
    """What of the store is not what was written to it."""


def document(report: RunReport) -> dict[str, Any]:
    """The report of the trials, with ``trajectories``."""
    told = {**report.figures.to_json(), "damage": list(report.damage)}
    return {**to_json(report.trials), "trajectories": told}


def show(report: RunReport, console: Console) -> None:
    """Prints it; what the trials came to last."""
    if len(report.figures):
        for line in _lines(report):
            console.print(Text(one_line(line, 1000)), soft_wrap=True)
        console.print()
    for line in report.damage[:DAMAGE_SHOWN]:
        console.print(Text(f"damaged  {one_line(line, 500)}", style="red"), soft_wrap=True)
    if len(report.damage) > DAMAGE_SHOWN:
        console.print(f"and {len(report.damage) - DAMAGE_SHOWN} more, in report.json")
    print_report(report.trials, console)


def _lines(report: RunReport) -> Iterator[str]:
    figures = report.figures
    seen = figures.seen
    stops = ", ".join(f"{name} {n}" for name, n in figures.stops.items())
    yield f"{_n(len(figures), 'trajectory', 'trajectories')} stored; ended by: {stops}"
    out = figures.stops.get("context", 0)
    nudged = sum(each.nudged for each in seen)
    yield f"context used up in {_share(out, len(seen))}, nudged in {_share(nudged, len(seen))}"
    rate = figures.tokens_per_s
    speed = f", {rate:,.0f} tokens/s a request" if rate else ""
    yield (
        f"{figures.sampled_tokens:,} of {sum(each.tokens for each in seen):,} tokens sampled: "
        f"of a trajectory {_spread(figures.quantiles('sampled_tokens'))}{speed}"
    )
    calls, good = sum(each.calls for each in seen), figures.calls_ok
    unread = count(sum(each.unread for each in seen), "problem")
    yield (
        f"turns {_spread(figures.quantiles('turns'))}; {count(calls, 'tool call')}, "
        f"{percent(good)} succeeded; {unread} of calls that could not be read"
    )
    own, waited = sum(each.own_s for each in seen), sum(each.waited_s for each in seen)
    yield f"model's own time {seconds(own)}, waiting {seconds(waited)}"


def _spread(row: Quantiles | None) -> str:
    """``p50 12, p99 40, max 41``."""
    return f"p50 {row.p50:,.0f}, p99 {row.p99:,.0f}, max {row.max:,.0f}" if row else "none"


def _share(n: int, of: int) -> str:
    return f"{n} ({percent(n / of if of else None)})"


def _n(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"
