# SPDX-License-Identifier: Apache-2.0
"""How long a run goes on and what it keeps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """One run."""

    seed: int = 0
    """Of the order of groups and of whatever a step draws."""
    epochs: int = 1
    """How often tasks, or recorded trajectories, are gone through."""
    steps: int = 0
    """Updates at most; 0 for as many as the epochs come to."""
    deterministic: bool = False
    """Only operations that give the same bits again; slower on a GPU."""

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.steps < 0:
            raise ValueError("epochs, steps: a run has at least 1 epoch, and 0 steps or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointConfig:
    """What of a run outlives a kill."""

    every: int = 10
    """Steps between two; there is one more at the end and at an interruption."""
    keep: int = 2
    """The newest; older ones are removed."""

    def __post_init__(self) -> None:
        if self.every < 1 or self.keep < 1:
            raise ValueError("every, keep: both at least 1")
