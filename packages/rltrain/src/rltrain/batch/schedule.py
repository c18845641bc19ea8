# SPDX-License-Identifier: Apache-2.0
"""Which groups each step trains on.

Contract: a pure function of the groups' names, the settings and the seed, so the number of a step
is all there is to keep of where a run stands. Every group is in exactly one batch of an epoch, and
batches of an epoch differ by at most one group in size.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from rltrain.batch.source import Group


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """The steps of a run over recorded groups."""

    groups: Sequence[Group]
    prompts: int
    """Of a step, at most."""
    seed: int
    epochs: int
    steps: int = 0
    """At most; 0 for all."""
    order: Literal["shuffled", "recorded"] = "shuffled"

    def __len__(self) -> int:
        """How many steps there are."""
        most = self.epochs * self.in_epoch
        return min(most, self.steps) if self.steps else most

    @cached_property
    def in_epoch(self) -> int:
        """Steps of one epoch."""
        return -(-len(self.groups) // self.prompts)

    def batch(self, step: int) -> list[Group]:
        """The groups of a step, which counts from 0."""
        epoch, place = divmod(step, self.in_epoch)
        order = self._order(epoch)
        count = len(order)
        return order[place * count // self.in_epoch : (place + 1) * count // self.in_epoch]

    def _order(self, epoch: int) -> list[Group]:
        if self.order == "recorded":
            return list(self.groups)
        return sorted(self.groups, key=lambda group: _drawn(self.seed, epoch, group.name))


def _drawn(seed: int, epoch: int, name: str) -> bytes:
    """A group's place in an epoch's order, whatever others there are."""
    return hashlib.sha256(f"{seed}/{epoch}/{name}".encode()).digest()
