# SPDX-License-Identifier: Apache-2.0
"""Which weights: how often a run was gone on with, and the steps taken since its beginning.

Contract: two versions are equal only where their weights are. Weights that a killed run had reached
and a resumed one has not are of another lineage, however many steps they are from the beginning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

STEPS: Final = 1_000_000
"""Of a lineage, at most."""
LINEAGES: Final = 2_147
"""A version is recorded with every token, in an int32."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class WeightVersion:
    """Weights of a run."""

    lineage: int
    step: int

    def __post_init__(self) -> None:
        if not (0 <= self.step < STEPS and 0 <= self.lineage < LINEAGES):
            raise ValueError(
                f"weight version {self.lineage}/{self.step}: a run has {LINEAGES:,} lineages of"
                f" {STEPS:,} steps at most"
            )

    @classmethod
    def of(cls, number: int) -> Self:
        """The version that a token was recorded with."""
        lineage, step = divmod(number, STEPS)
        return cls(lineage=lineage, step=step)

    @property
    def number(self) -> int:
        """As engines are told it, and as tokens are recorded with it."""
        return self.lineage * STEPS + self.step

    def __str__(self) -> str:
        return f"{self.lineage}/{self.step}"
