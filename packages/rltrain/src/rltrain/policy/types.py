# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""What any backend is asked for, and what it tells: the protocol that loop and gates know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from torch import Tensor

from rltrain.batch.micro import MicroBatch
from rltrain.objective.loss import Loss
from rltrain.objective.report import Seen
from rltrain.objective.terms import TermsConfig
from rltrain.policy.fused import Scored


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a step descends."""

    loss: Loss
    terms: TermsConfig


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Stepped:
    """What a step did; the same on every rank, except what was seen."""

    loss: float
    """The whole batch's."""
    gradient_norm: float
    """Before it was clipped."""
    learning_rate: float
    seen: Seen
    """On rank 0 all trained tokens, on others the rank's own."""


class Backend(Protocol):
    """A policy that can be scored, trained, kept and handed on. Called by all ranks together."""

    @property
    def ranks(self) -> int:
        """Among how many a batch is cut."""
        ...

    @property
    def rank(self) -> int:
        """From 0."""
        ...

    def score(self, batch: MicroBatch) -> Scored:
        """Log-probs and entropies of a micro-batch's trained tokens, without a gradient."""
        ...

    def step(self, batches: Sequence[MicroBatch], goal: Goal) -> Stepped:
        """One update by all ranks' micro-batches, as many on each."""
        ...

    def weights(self) -> Iterator[tuple[str, Tensor]]:
        """Whole tensors by the names of the checkpoint it was loaded from, for engines."""
        ...

    def save(self, directory: Path) -> None:
        """Leave everything that another step depends on."""
        ...

    def restore(self, directory: Path) -> None:
        """Be what `save` left; the next step is then what it would have been."""
        ...
