# SPDX-License-Identifier: Apache-2.0
"""Where the numbers of steps go: the run's own file, and the boards that show them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Self

from rltrain.loop.settings import Settings
from rltrain.track.boards import Boards, open_boards
from rltrain.track.metrics import METRICS, Metrics, cut_after


class Numbers:
    """Where the numbers of steps go; nowhere on ranks but the first."""

    def __init__(self, metrics: Metrics | None = None, boards: Boards | None = None) -> None:
        self._metrics, self._boards = metrics, boards

    def log(self, step: int, numbers: dict[str, float]) -> None:
        """Those of one step."""
        if self._metrics is not None:
            self._metrics.log(step, numbers)
        if self._boards is not None:
            self._boards.log(step, numbers)

    def sync(self) -> None:
        """Put them on the disk."""
        if self._metrics is not None:
            self._metrics.sync()

    @classmethod
    def after(cls, step: int, root: Path, settings: Settings, told: Callable[[str], None]) -> Self:
        """Of the steps after this one; those of steps that are taken again are cut off.

        Raises:
            Refused: what is there is damaged.
        """
        cut_after(root / METRICS, step)
        boards = open_boards(root, told, asdict(settings), after=step or None)
        return cls(Metrics(root / METRICS), boards)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        for each in (self._metrics, self._boards):
            if each is not None:
                each.close()
