# SPDX-License-Identifier: Apache-2.0
"""How many samples a step has, and how they are cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchConfig:
    """The defaults are those of the published runs."""

    prompts: int = 16
    """Groups of a step."""
    samples: int = 16
    """Of a group; what was recorded has as many as it has."""
    micro_batch_tokens: int = 160_000
    """Of all samples of a micro-batch, at most; the longest trajectory must fit."""
    order: Literal["shuffled", "recorded"] = "shuffled"
    """Of recorded groups: anew in every epoch, or as they were written."""

    def __post_init__(self) -> None:
        for name in ("prompts", "samples", "micro_batch_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)} is below 1")
