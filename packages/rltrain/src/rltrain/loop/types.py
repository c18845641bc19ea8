# SPDX-License-Identifier: Apache-2.0
"""What a run is given, who hears of it, and how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rltrain.batch.cost import Cost
from rltrain.batch.source import Group, Recorded
from rltrain.loop.settings import Settings


class Told(Protocol):
    """Who hears of a run while it goes on."""

    def line(self, text: str) -> None:
        """Something that a person should know."""
        ...

    def step(self, step: int, steps: int, numbers: dict[str, float]) -> None:
        """A step was taken."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended."""

    step: int
    """Steps that were taken, those before a resumption among them."""
    steps: int
    """Steps there are."""
    resumed_at: int
    interrupted: bool
    checkpoint: Path | None
    last: dict[str, float]
    """Numbers of the last step that was taken now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is trained on what, and where."""

    settings: Settings
    recorded: Recorded
    groups: Sequence[Group]
    """That steps are taken on."""
    cost: Cost
    root: Path
    """The run's directory."""
    remarks: tuple[str, ...] = ()
    """What a person should know of the data before it is trained on."""
