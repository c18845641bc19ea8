# SPDX-License-Identifier: Apache-2.0
"""Engines, and what became of each in a sync."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rltrain.sync.version import WeightVersion


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """An engine that holds a whole copy of the policy."""

    name: str
    url: str
    """``http://HOST:PORT``"""
    ranks: int = 1
    """Processes among which its copy is divided."""


class State(Enum):
    """What an engine is good for after a sync."""

    NEW = "new"
    """It holds the new version, and samples."""
    OLD = "old"
    """It holds what it held before, and samples."""
    LOST = "lost"
    """Nobody knows what it holds. It is paused or gone, and has to be replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one engine."""

    replica: str
    state: State
    failure: str = ""
    """Operation and reason, where it does not hold the new version."""
    paused_s: float = 0.0
    """How long it sampled nothing."""

    def __str__(self) -> str:
        return f"{self.replica} is {self.state.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """What a sync did, for one line of numbers."""

    version: WeightVersion
    seconds: float
    tensors: int
    bytes: int
    """To each replica."""
    verified: int
    """Tensors of which every replica holds the values that were sent."""
    transformed: int
    """Tensors that an engine keeps otherwise, which the configuration allows."""
    replicas: tuple[Outcome, ...]
    parts: dict[str, float]
    """Seconds by operation, of the slowest replica each; ``transfer`` has ``deliver`` in it."""
