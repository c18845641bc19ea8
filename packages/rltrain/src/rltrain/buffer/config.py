# SPDX-License-Identifier: Apache-2.0
"""How old a sample may be when a step is taken on it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferConfig:
    """The default is that of the published runs."""

    staleness: int = 3
    """Steps between the oldest weights that sampled a token of it and those that the step is taken
    from, at most: S. 0 is synchronous."""

    def __post_init__(self) -> None:
        if self.staleness < 0:
            raise ValueError(f"staleness: {self.staleness} is below 0")

    def ceiling(self, prompts: int, samples: int) -> int:
        """Trials that may be begun and not yet trained on: (S + 1) batches of them."""
        return (self.staleness + 1) * prompts * samples
