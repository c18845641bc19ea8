# SPDX-License-Identifier: Apache-2.0
"""A live run on one screen of a terminal: what it earns, what it waits for, what it runs on.

Contract: a mean reward stands beside its fault share and its bounds; what was not measured says so.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

BARS: Final = "▁▂▃▄▅▆▇█"
SHOWN: Final = 48
"""Steps of a line of bars."""
LINES: Final = 6
"""Of what was said last."""
NOT_MEASURED: Final = "not measured"


@dataclass(slots=True, kw_only=True)
class Dashboard:
    """What is known of a run, and how it looks."""

    name: str
    glance: Mapping[str, Any] = field(default_factory=dict[str, Any])
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])
    """Of the last step."""
    rewards: deque[float] = field(default_factory=lambda: deque[float](maxlen=SHOWN))
    said: deque[str] = field(default_factory=lambda: deque[str](maxlen=LINES))
    state: str = "starting"

    def step(self, numbers: Mapping[str, float]) -> None:
        """One more was taken."""
        self.numbers = numbers
        self.rewards.append(numbers.get("reward/mean", math.nan))

    def shown(self) -> RenderableType:
        """All of it."""
        table = Table.grid(padding=(0, 2))
        table.add_column(style="bold", no_wrap=True)
        table.add_column(no_wrap=True, overflow="ellipsis")
        for name, value in self._rows():
            table.add_row(name, value)
        said = [Text(line, style="dim", no_wrap=True, overflow="ellipsis") for line in self.said]
        return Group(table, *said)

    def _rows(self) -> Sequence[tuple[str, RenderableType]]:
        return (
            (self.name, self._progress()),
            ("reward", self._reward()),
            ("trainer", self._trainer()),
            ("buffer", self._buffer()),
            ("engines", self._engines()),
        )

    def _progress(self) -> RenderableType:
        step, steps = self.glance.get("step", 0), self.glance.get("steps", 0)
        row = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=max(steps, 1), completed=step, width=30)
        row.add_row(Text(f"step {step} of {steps}"), bar, Text(self.state))
        return row

    def _reward(self) -> Text:
        if not self.rewards:
            return Text("no step yet")
        number = self.numbers
        share, low, high = (number.get(f"reward/{n}") for n in ("fault_share", "low", "high"))
        bounds = f" {shown(low, '.3f')} to {shown(high, '.3f')}"
        text = Text(f"{shown(number.get('reward/mean'), '.3f')} ")
        text.append(bars(self.rewards), style="cyan")
        text.append(f"  faults {shown(share, '.0%')},{bounds}")
        return text

    def _trainer(self) -> Text:
        number = self.numbers
        busy = "training" if self.glance.get("training") else "waiting for a batch"
        return Text(
            f"{busy}; entropy {shown(number.get('loss/entropy'), '.2f')}"
            f"  |g| {shown(number.get('optimizer/gradient_norm'), '.2g')}"
            f"  step {shown(number.get('seconds/step'), '.1f')} s"
            f"  gate {shown(number.get('gate/mean'), '.1e')} nats"
        )

    def _buffer(self) -> Text:
        glance, number = self.glance, self.numbers
        return Text(
            f"{glance.get('running', 0)} of {glance.get('slots', 0)} slots under way,"
            f" {glance.get('buffered', 0)} samples wait; {glance.get('binds', 'nothing')} bind;"
            f" staleness {shown(number.get('staleness/max'), '.0f')} at most"
        )

    def _engines(self) -> Text:
        text = Text()
        for name, state, trials in self.glance.get("engines", ()):
            style = "green" if state == "ready" else "yellow" if state != "gone" else "red"
            text.append(f"{name} ")
            text.append(state, style=style)
            text.append(f" {trials} trials  ")
        text.append(f"sync {shown(self.numbers.get('sync/paused_s'), '.2f')} s paused")
        return text


def bars(values: Sequence[float] | deque[float]) -> str:
    """One character a value, from the least of them to the most; a gap for none."""
    known = [each for each in values if math.isfinite(each)]
    if not known:
        return ""
    low, span = min(known), max(known) - min(known) or 1.0
    most = len(BARS) - 1
    return "".join(
        BARS[round((each - low) / span * most)] if math.isfinite(each) else " " for each in values
    )


def shown(value: float | None, form: str) -> str:
    """A number, or that there is none."""
    return format(value, form) if value is not None and math.isfinite(value) else NOT_MEASURED
