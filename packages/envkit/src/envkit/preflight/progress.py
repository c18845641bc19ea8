# SPDX-License-Identifier: Apache-2.0
"""A run while it happens: live rows on a terminal, plain lines elsewhere.

Contract: writes to the console it is given (the CLI gives standard error, so that standard output
holds the result alone), and draws on events only: a drawing thread in this process would make it
unfit to fork. Whatever came from a box is drawn as plain text.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from envkit.preflight.board import Board, is_bad, trial_line
from envkit.preflight.text import one_line, seconds
from envkit.preflight.types import Event, TrialEnded, View

STATUS_EVERY_S: Final = 10.0
"""A plain log stays readable, and shows within ten seconds that a run is alive."""
DRAW_EVERY_S: Final = 0.1
BAD_SHOWN: Final = 6
BAR_WIDTH: Final = 40


def view_for(console: Console, total: int) -> View:
    """Live rows where the console is a terminal, plain lines where it is not."""
    return LiveView(console, total) if console.is_terminal else PlainView(console, total)


class PlainView:
    """A line for each trial that ended, and one about the run every ten seconds."""

    def __init__(
        self, console: Console, total: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._board = Board(total=total)
        self._clock = clock
        self._said_at = clock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    def notice(self, line: str) -> None:
        self._say(one_line(line, 1000))

    def event(self, event: Event) -> None:
        self._board.add(event)
        if isinstance(event, TrialEnded):
            done = f"[{len(self._board.ended):>{len(str(self._board.total))}}/{self._board.total}]"
            self._say(f"{done} {trial_line(event.record)}")
        elif self._clock() - self._said_at >= STATUS_EVERY_S:
            self._say(self._board.line())

    def _say(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)
        self._said_at = self._clock()


class LiveView:
    """How many trials are in each phase, redrawn in place, and the last trials to look at."""

    def __init__(
        self, console: Console, total: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._board = Board(total=total)
        self._clock = clock
        self._began_at = clock()
        self._drawn_at = 0.0
        self._bad: deque[str] = deque(maxlen=BAD_SHOWN)
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def notice(self, line: str) -> None:
        self._console.print(Text(one_line(line, 1000), style="dim"))

    def event(self, event: Event) -> None:
        self._board.add(event)
        if isinstance(event, TrialEnded) and is_bad(event.record):
            self._bad.append(trial_line(event.record))
        now = self._clock()
        if now - self._drawn_at >= DRAW_EVERY_S:
            self._drawn_at = now
            self._live.update(self._draw(now), refresh=True)

    def _draw(self, now: float) -> RenderableType:
        bad = [Text(line, style="red", overflow="ellipsis", no_wrap=True) for line in self._bad]
        return Group(self._headline(now), self._phases(), *bad)

    def _headline(self, now: float) -> Text:
        gauges = self._board.gauges
        memory = f", {gauges.memory_mib:,.0f} MiB" if gauges else ""
        line = f"{seconds(now - self._began_at)}  {self._board.line()}{memory}"
        return Text(line, style="bold red" if self._board.faulted_attempts else "bold")

    def _phases(self) -> Table:
        table = Table.grid(padding=(0, 1))
        table.add_column(justify="right")
        table.add_column(justify="right", min_width=len(str(self._board.total)))
        table.add_column()
        rows = {**self._board.in_phase(), "ended": len(self._board.ended)}
        for name, n in rows.items():
            table.add_row(Text(name), str(n), self._bar(n))
        return table

    def _bar(self, n: int) -> Text:
        """Full and empty differ in shape, not in colour alone."""
        full = round(BAR_WIDTH * n / max(1, self._board.total))
        return Text.assemble(("━" * full, "cyan"), ("·" * (BAR_WIDTH - full), "dim"))
