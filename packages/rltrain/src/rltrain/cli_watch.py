# SPDX-License-Identifier: Apache-2.0
"""What a person sees of a live run: one screen on a terminal, lines anywhere else.

Contract: standard output has nothing but what a run ended in; all else goes to standard error.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from rltrain.track.dashboard import Dashboard
from rltrain.track.line import step_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

    from envkit.crew.types import Ready

REDRAWN_S: Final = 0.25


class Watch:
    """Told of a live run."""

    def __init__(self, name: str, console: Console, live: Live | None) -> None:
        self._board = Dashboard(name=name)
        self._console, self._live = console, live
        self._drawn_s = 0.0

    def line(self, text: str) -> None:
        """Something that a person should know."""
        self._board.said.append(text)
        if self._live is None:
            self._console.print(text, markup=False)
        self._draw()

    def print(self, text: str) -> None:
        """What stays where it is, above the screen."""
        self._console.print(text, markup=False)

    def ready(self, crew: Ready) -> None:
        """Engines, trainer and crews are there."""
        self._board.state = "running"
        self._draw()

    def glance(self, glance: Mapping[str, Any]) -> None:
        """How things stand."""
        self._board.glance = glance
        if time.monotonic() - self._drawn_s >= REDRAWN_S:
            self._draw()

    def step(self, step: int, steps: int, numbers: dict[str, float]) -> None:
        """A step was taken."""
        self._board.step(numbers)
        if self._live is None:
            self._console.print(f"step {step}/{steps}  {step_line(numbers)}", markup=False)
        self._draw()

    def _draw(self) -> None:
        self._drawn_s = time.monotonic()
        if self._live is not None:
            self._live.update(self._board.shown(), refresh=True)


@contextmanager
def watching(name: str) -> Generator[Watch]:
    """A screen where standard error is a terminal."""
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if not console.is_terminal:
        yield Watch(name, console, None)
        return
    with Live(console=console, auto_refresh=False, redirect_stdout=False) as live:
        yield Watch(name, console, live)
