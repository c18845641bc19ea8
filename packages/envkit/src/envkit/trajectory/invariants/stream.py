# SPDX-License-Identifier: Apache-2.0
"""Tokens, segments, and what of them the engine sampled."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from envkit.trajectory.invariants.parts import Problem, at, first, segments_of
from envkit.trajectory.types import Episode, Kind, Sampling, Segment, Stop, Stream

LOGPROB_MOST: Final = 1e-5
"""The logarithm of a probability, by how much a float32 log-softmax may be over 0."""

_DTYPES: Final[dict[str, Any]] = {
    "token_ids": np.dtype(np.int32),
    "loss_mask": np.dtype(np.bool_),
    "logprobs": np.dtype(np.float32),
    "weight_version": np.dtype(np.int32),
}


def arrays(episode: Episode) -> Iterator[Problem]:
    """Of their types, and of one length."""
    stream = episode.stream
    for name, dtype in _DTYPES.items():
        array = getattr(stream, name)
        if array.dtype != dtype or array.ndim != 1:
            yield at(name), f"is {array.dtype} of {array.ndim} axes, must be {dtype} of one"
        if len(array) != len(stream.token_ids):
            yield at(name), f"has {len(array)} entries for {len(stream.token_ids)} tokens"
    if not len(stream.token_ids) and episode.stop is not Stop.FAULT:
        yield at("token_ids"), f"is empty, and the stop is {episode.stop}"
    if len(stream.token_ids) and stream.token_ids.min() < 0:
        yield at("token_ids"), "holds an id below 0"


def segments(episode: Episode) -> Iterator[Problem]:
    """They tile the stream, in the order of the turns."""
    end = turn = 0
    for index, segment in enumerate(episode.stream.segments):
        where = at(f"segments[{index}]")
        if segment.start != end or segment.stop <= segment.start:
            yield where, f"is [{segment.start}, {segment.stop}); the one before ends at {end}"
        if segment.turn < turn:
            yield where, f"is of turn {segment.turn}, after one of turn {turn}"
        if (segment.kind is Kind.PROMPT) != (index == 0):
            yield where, f"is of kind {segment.kind}; the first one alone is the prompt"
        if (segment.kind is Kind.MODEL) != (segment.finish is not None):
            yield where, f"is of kind {segment.kind} and has finish {segment.finish}"
        end, turn = segment.stop, segment.turn
    if end != len(episode.stream.token_ids):
        yield at("segments"), f"end at {end} of {len(episode.stream.token_ids)} tokens"
    for kind in (Kind.MODEL, Kind.TOOL):
        turns = [each.turn for each in segments_of(episode.stream, kind)]
        if len(turns) != len(set(turns)):
            yield at("segments"), f"hold two of kind {kind} in one turn"


def sampled(episode: Episode) -> Iterator[Problem]:
    """Mask, logprobs and versions stand where the engine sampled, and nowhere else."""
    stream = episode.stream
    mask = mask_of(stream.segments, len(stream.token_ids))
    if not np.array_equal(mask, stream.loss_mask):
        yield at("loss_mask"), first(mask != stream.loss_mask, "is not what the segments say")
    if not np.array_equal(np.isnan(stream.logprobs), ~mask):
        odd = np.isnan(stream.logprobs) == mask
        yield at("logprobs"), first(odd, "is NaN where sampled, or a number elsewhere")
    logprobs = stream.logprobs[mask]
    if len(logprobs) and not (logprobs.max() <= LOGPROB_MOST and math.isfinite(logprobs.min())):
        yield at("logprobs"), f"are {logprobs.min():g} to {logprobs.max():g}"
    if len(mask) and stream.weight_version.min() < -1:
        yield at("weight_version"), "holds one below -1"
    known = stream.weight_version >= 0
    if (known & ~mask).any():
        yield at("weight_version"), first(known & ~mask, "is set where nothing was sampled")


def alternatives(stream: Stream, sampling: Sampling) -> Iterator[Problem]:
    """As many as were asked for, where a token was sampled."""
    ids, logprobs = stream.topk_ids, stream.topk_logprobs
    if ids is None or logprobs is None:
        if ids is not logprobs:
            yield at("topk_ids"), "and topk_logprobs go together"
        return
    shape = (len(stream.token_ids), sampling.top_logprobs)
    if ids.shape != shape or ids.dtype != np.int32:
        yield at("topk_ids"), f"is {ids.dtype} {ids.shape}, must be int32 {shape}"
    if logprobs.shape != shape or logprobs.dtype != np.float32:
        yield at("topk_logprobs"), f"is {logprobs.dtype} {logprobs.shape}, must be float32 {shape}"
    if not np.array_equal(ids == -1, np.isnan(logprobs)) or (ids < -1).any():
        yield at("topk_logprobs"), "must be NaN exactly where topk_ids is -1"
    if (logprobs > LOGPROB_MOST).any():
        yield at("topk_logprobs"), "holds one above 0"
    if (ids[~stream.loss_mask] != -1).any():
        yield at("topk_ids"), "is set where nothing was sampled"


def mask_of(segments: tuple[Segment, ...], length: int) -> Any:
    """True exactly on the model's segments."""
    mask = np.zeros(length, np.bool_)
    for segment in segments:
        if segment.kind is Kind.MODEL:
            mask[segment.start : segment.stop] = True
    return mask
