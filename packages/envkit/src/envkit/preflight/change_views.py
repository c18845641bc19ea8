# SPDX-License-Identifier: Apache-2.0
"""A comparison for a terminal, a browser and a pull request.

Contract: pure. A terminal shows what changed, a line each; the tables show every measure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.text import Text

from envkit.preflight.baseline import change_line, shown
from envkit.preflight.text import count, one_line
from envkit.preflight.types import Change, Comparison

HEAD: Final = ("measure", "before", "now", "times (95 %)", "p", "p adjusted", "n", "")
STYLE: Final = {"worse": "red", "better": "green"}


def text(found: Comparison) -> Iterator[Text]:
    """What got worse, what got better, how many measures did neither."""
    yield Text(f"against {one_line(found.baseline, 400)}")
    for verdict in ("worse", "better"):
        for change in found.changes:
            if change.verdict == verdict:
                line = f" {change_line(change)}"
                yield Text.assemble((f"  {verdict:<6}", STYLE[verdict]), line)
    same = sum(change.verdict == "same" for change in found.changes)
    yield Text(f"  same   {count(same, 'measure')} within chance")


def cells(change: Change) -> tuple[str, ...]:
    """One row, in the order of ``HEAD``."""
    ratio = change.ratio
    times = f"{ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f})" if ratio.value else ""
    return (
        one_line(change.measure, 80),
        shown(change, change.before),
        shown(change, change.now),
        times,
        f"{change.p:.2g}",
        f"{change.p_adjusted:.2g}",
        f"{change.n_before} / {change.n_now}",
        change.verdict,
    )
