# SPDX-License-Identifier: Apache-2.0
"""What of a trajectory is compared: tokens of this policy's, and of no older one in part.

Contract: a token is comparable where the model sampled it with the weights asked for, and its
request attended to no keys and values of older ones. Where an engine does not tell the latter it
counts as not older.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from envkit.trajectory.types import Floats, Ids, Kind, Mask, Trajectory
from rltrain.batch.sample import Sample, kv_versions

type Doubles = npt.NDArray[np.float64]

FLOOR: Final = -9000.0
"""vLLM says -9999 in place of minus infinity and of not-a-number."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Row:
    """A trajectory as it is compared. Arrays have one entry a token."""

    sample: Sample
    """Its mask is of the comparable tokens; alternatives are left out."""
    turn: Ids
    """Of each token that the model sampled, comparable or not; -1 elsewhere."""

    @classmethod
    def of(cls, trajectory: Trajectory, version: int) -> Self:
        """The comparable tokens of one version.

        Raises:
            OtherDistribution: it was sampled with a cut or penalised distribution.
        """
        stream = trajectory.episode.stream
        mask = not_stale(trajectory) & (stream.weight_version == version)
        turn = np.full(len(stream.token_ids), -1, np.int32)
        for each in stream.segments:
            if each.kind is Kind.MODEL:
                turn[each.start : each.stop] = each.turn
        bare = replace(Sample.of(trajectory), mask=mask, topk_ids=None, topk_logprobs=None)
        return cls(sample=bare, turn=turn)

    @property
    def places(self) -> Ids:
        """Of the comparable tokens."""
        return np.flatnonzero(self.sample.mask).astype(np.int32)

    def turns(self) -> Iterator[tuple[int, Ids]]:
        """Each turn's number and places, in order."""
        for number in np.unique(self.turn[self.turn >= 0]).tolist():
            yield number, np.flatnonzero(self.turn == number).astype(np.int32)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Compared:
    """A trajectory with what the trainer makes of it."""

    row: Row
    trainer: Doubles
    """Log-probs of the comparable tokens; NaN elsewhere."""

    @property
    def difference(self) -> Doubles:
        """Trainer less rollout, of each token; NaN where it is not comparable."""
        return np.where(self.row.sample.mask, self.trainer - self.row.sample.logprobs, np.nan)


def not_stale(trajectory: Trajectory) -> Mask:
    """Where the model sampled, a log-prob is recorded, and nothing older was attended to."""
    stream, oldest = trajectory.episode.stream, kv_versions(trajectory)
    mask = stream.loss_mask & ((oldest < 0) | (oldest >= stream.weight_version))
    return mask & ~(stream.logprobs <= FLOOR)


def finite(each: Compared) -> Compared:
    """Without the tokens of which the trainer makes no number."""
    sample = each.row.sample
    kept = replace(sample, mask=sample.mask & np.isfinite(each.trainer))
    return replace(each, row=replace(each.row, sample=kept))


def of_all(rows: Sequence[Compared]) -> tuple[Doubles, Doubles]:
    """Log-probs of every comparable token: the rollout's and the trainer's."""
    masks = [each.row.sample.mask for each in rows]
    pairs = list(zip(rows, masks, strict=True))
    rollout = [each.row.sample.logprobs[mask] for each, mask in pairs]
    trainer = [each.trainer[mask] for each, mask in pairs]
    return _together(rollout), _together(trainer)


def _together(parts: Sequence[Floats | Doubles]) -> Doubles:
    return np.concatenate([np.empty(0), *parts]).astype(np.float64)
