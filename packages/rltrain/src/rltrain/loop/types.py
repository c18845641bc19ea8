# SPDX-License-Identifier: Apache-2.0
"""What a run is given, who hears of it, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from envkit.crew.types import Ready
from rltrain.batch.cost import Cost
from rltrain.batch.source import Group, Recorded
from rltrain.cluster.config import ClusterConfig
from rltrain.loop.settings import Settings
from rltrain.refused import Refused
from rltrain.rollout.config import RolloutConfig


def expect_ahead(stop_after: int, step: int) -> None:
    """A run that stands after ``step`` can still be left after ``stop_after``; 0 names none.

    Raises:
        Refused: it is past it.
    """
    if 0 < stop_after <= step:
        raise Refused(
            f"--stop-after-step {stop_after}: the run stands after step {step} already; name a"
            " later one, or leave it out"
        )


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
    stop_after: int = 0
    """Step after which it is left as if somebody had stopped it; 0 for none."""
    remarks: tuple[str, ...] = ()
    """What a person should know of the data before it is trained on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveWork:
    """What is sampled and trained, and where."""

    settings: Settings
    rollout: RolloutConfig
    cluster: ClusterConfig
    tasks: Path
    """Directory of those that are trained on."""
    names: Sequence[str]
    """Of the tasks in it that are trained on."""
    steps: int
    """Updates; 0 where weights are only evaluated."""
    held_out: Path | None = None
    """Directory of tasks that are only evaluated on."""
    digest: str
    """Of the tasks: a run is gone on with on the same ones only."""
    cost: Cost
    root: Path
    """The run's directory."""
    environment_python: Path
    """Interpreter that trials are executed with."""
    stop_after: int = 0
    """Step after which it is left as if somebody had stopped it; 0 for none."""
    remarks: tuple[str, ...] = ()
    """What a person should know before it begins."""

    @property
    def until(self) -> int:
        """Steps that are taken now."""
        return min(self.steps, self.stop_after or self.steps)

    @property
    def task_directories(self) -> tuple[Path, ...]:
        """All that a crew must know."""
        return (self.tasks,) if self.held_out is None else (self.tasks, self.held_out)


class LiveTold(Protocol):
    """Who hears of a live run while it goes on."""

    def line(self, text: str) -> None:
        """Something that a person should know."""
        ...

    def ready(self, crew: Ready) -> None:
        """Engines, trainer and crews are there."""
        ...

    def step(self, step: int, steps: int, numbers: dict[str, float]) -> None:
        """A step was taken."""
        ...

    def glance(self, glance: Mapping[str, Any]) -> None:
        """How things stand now, a few times a second at most."""
        ...
