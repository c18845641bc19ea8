# SPDX-License-Identifier: Apache-2.0
"""How old a sample may be when a step is taken on it, and what is done to keep to that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

type OrderName = Literal["deadline", "completion", "drop_stale", "strict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferConfig:
    """The default bound is that of the published runs; how it is kept is ours."""

    staleness: int = 3
    """Steps between the oldest weights that sampled a token of it and those that the step is taken
    from, at most: S. 0 is synchronous."""
    order: OrderName = "deadline"
    """Which groups a step takes: what is near its bound first; or, to compare, as groups are
    finished behind a count of begun ones, the same with stale groups dropped, or as begun."""
    head_start: int = 1
    """Batches that are finished beside the first one before it is taken, at most S: what is
    finished first is short, and without them the first steps would be taken on nothing else."""
    bound_wait_s: float = 5400.0
    """How long the trainer waits for an attempt of a group at its bound, or while there is no batch
    at all, from when both were there; then the group goes on without it. Longer than any trial
    takes: then none is lost."""
    retries: int = 1
    """Times a sample that a fault took is begun again, whatever the time."""
    refills: int = 1
    """Times another one is begun in its place after that, if it will end before the bound."""

    def __post_init__(self) -> None:
        for name in ("staleness", "head_start", "bound_wait_s", "retries", "refills"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}: {getattr(self, name):g} is below 0")
        if self.order not in (known := get_args(OrderName.__value__)):
            raise ValueError(f"order: there is no {self.order!r}; there are {', '.join(known)}")

    def ceiling(self, prompts: int, samples: int) -> int:
        """Trials that may be begun and not yet trained on: (S + 1) batches of them."""
        return (self.staleness + 1) * prompts * samples
