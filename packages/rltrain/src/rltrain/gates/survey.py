# SPDX-License-Identifier: Apache-2.0
"""All that a store says of itself, before anything of it is scored.

Contract: every row is read and proven once; what is damaged is named and costs no other row. Of a
row only counts are kept, so that a store may be larger than memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from envkit.trajectory.errors import BrokenInvariant
from envkit.trajectory.store import Bad, Store
from envkit.trajectory.types import Trajectory
from rltrain.batch.sample import OtherDistribution, Sample
from rltrain.gates.taken import FLOOR, not_stale

type Told = Callable[[int, int], None]
"""Told how many of how many are done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSeen:
    """One good row."""

    trajectory_id: str
    comparable: Mapping[int, int]
    """Tokens by the version of the weights that sampled them."""
    sampled: int
    highest_id: int
    """-1 where it has no tokens."""
    floored: int
    """Tokens whose recorded log-prob stands for minus infinity or not-a-number."""
    tokenizer_digest: str
    model_digest: str
    other: str
    """Why its distribution cannot be made again; empty where it can."""


@dataclass(slots=True, kw_only=True)
class Survey:
    """What a store holds."""

    rows: list[RowSeen] = field(default_factory=list[RowSeen])
    bad: list[Bad] = field(default_factory=list[Bad])
    """In order."""

    @property
    def comparable(self) -> Counter[int]:
        """Tokens by version."""
        counts = Counter[int]()
        for row in self.rows:
            counts.update(row.comparable)
        return counts

    @property
    def sampled(self) -> int:
        """Tokens that any weights sampled."""
        return sum(row.sampled for row in self.rows)

    def chosen(self, version: int, tokens: int) -> Iterator[str]:
        """Rows of about so many comparable tokens, evenly over the store."""
        whole = self.comparable[version]
        share = min(1.0, tokens / whole) if whole else 0.0
        seen = taken = 0
        for row in self.rows:
            count = row.comparable.get(version, 0)
            seen += count
            if count and taken < seen * share:
                taken += count
                yield row.trajectory_id


def survey(store: Store, told: Told) -> Survey:
    """Read everything once."""
    seen, whole = Survey(), len(store)
    for number, each in enumerate(store.scan(), 1):
        if isinstance(each, Trajectory):
            seen.rows.append(_seen(each))
        else:
            seen.bad.append(each)
        told(min(number, whole), whole)
    return seen


def is_row(bad: Bad) -> bool:
    """Whether it is one row's damage, and not a file's."""
    return isinstance(bad, BrokenInvariant) or bool(bad.row)


def _seen(row: Trajectory) -> RowSeen:
    stream, identity = row.episode.stream, row.identity
    versions, counts = np.unique(stream.weight_version[not_stale(row)], return_counts=True)
    return RowSeen(
        trajectory_id=identity.trajectory_id,
        comparable=dict(zip(versions.tolist(), counts.tolist(), strict=True)),
        sampled=int(stream.loss_mask.sum()),
        highest_id=int(stream.token_ids.max(initial=-1)),
        floored=int((stream.logprobs[stream.loss_mask] <= FLOOR).sum()),
        tokenizer_digest=identity.tokenizer_digest,
        model_digest=identity.engine.model_digest,
        other=_other(row),
    )


def _other(row: Trajectory) -> str:
    if not row.episode.stream.loss_mask.any():
        return ""
    try:
        Sample.of(row)
    except OtherDistribution as other:
        return str(other)
    return ""
