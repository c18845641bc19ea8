# SPDX-License-Identifier: Apache-2.0
"""A token stream without what follows from the rest of it.

Contract: `unpack` undoes `pack` to the bit. The mask follows from the segments; logprobs,
alternatives and versions are kept of sampled tokens alone, versions as runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from envkit.trajectory.invariants import mask_of
from envkit.trajectory.types import Floats, Ids, Kind, Segment, Stream


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Packed:
    """What of a stream is stored. S is the number of sampled tokens, k that of alternatives."""

    segments: tuple[Segment, ...]
    token_ids: Ids
    logprobs: Floats
    """``[S]``."""
    run_starts: Ids
    """Where in the S a run of equal versions begins; the first is 0."""
    run_versions: Ids
    topk_ids: Ids | None = None
    """``[S * k]``."""
    topk_logprobs: Floats | None = None


def pack(stream: Stream) -> Packed:
    """What is to be stored of a stream that keeps the invariants."""
    mask = stream.loss_mask
    versions = stream.weight_version[mask]
    changes = np.flatnonzero(np.diff(versions)) + 1
    starts = np.concatenate([np.zeros(min(len(versions), 1), np.int32), changes]).astype(np.int32)
    return Packed(
        segments=stream.segments,
        token_ids=stream.token_ids,
        logprobs=stream.logprobs[mask],
        run_starts=starts,
        run_versions=versions[starts],
        topk_ids=None if stream.topk_ids is None else stream.topk_ids[mask].reshape(-1),
        topk_logprobs=(
            None if stream.topk_logprobs is None else stream.topk_logprobs[mask].reshape(-1)
        ),
    )


def unpack(packed: Packed, *, topk: int = 0) -> Stream:
    """The stream again; ``topk`` is how many alternatives a token has. Arrays are read-only.

    Raises:
        ValueError: the parts are not of one stream.
    """
    length = len(packed.token_ids)
    lengths = np.diff(packed.run_starts, append=np.int32(len(packed.logprobs)))
    versions = np.repeat(packed.run_versions, lengths)
    if len(versions) != len(packed.logprobs):
        raise ValueError(f"versions of {len(versions)} tokens for {len(packed.logprobs)} logprobs")
    spread = _spread(packed.segments, length)
    return Stream(
        token_ids=_frozen(packed.token_ids),
        loss_mask=_frozen(mask_of(packed.segments, length)),
        logprobs=spread(packed.logprobs, np.nan),
        weight_version=spread(versions, -1),
        segments=packed.segments,
        topk_ids=_alternatives(packed.topk_ids, topk, spread, -1),
        topk_logprobs=_alternatives(packed.topk_logprobs, topk, spread, np.nan),
    )


def _spread(segments: tuple[Segment, ...], length: int) -> Any:
    """How values of sampled tokens get to where those stand in the stream."""
    places = [(each.start, each.stop) for each in segments if each.kind is Kind.MODEL]
    sampled = sum(stop - start for start, stop in places)

    def spread(values: Any, elsewhere: float) -> Any:
        if len(values) != sampled:
            raise ValueError(f"values of {len(values)} tokens for {sampled} sampled ones")
        whole = np.full((length, *values.shape[1:]), elsewhere, values.dtype)
        taken = 0
        for start, stop in places:
            whole[start:stop] = values[taken : taken + stop - start]
            taken += stop - start
        return _frozen(whole)

    return spread


def _alternatives(values: Any, topk: int, spread: Any, elsewhere: float) -> Any:
    return None if values is None else spread(values.reshape(-1, topk), elsewhere)


def _frozen(array: Any) -> Any:
    array.flags.writeable = False
    return array
