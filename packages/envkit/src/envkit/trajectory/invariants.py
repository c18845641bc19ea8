# SPDX-License-Identifier: Apache-2.0
"""What must hold of a trajectory, checked when it is written and again when it is read.

Contract: `check` returns only where all of it holds, and names the row and the field otherwise. No
trainer needs to check anything of it again: token columns are of one length, the mask is true
exactly on what the engine sampled, each sampled token has the logarithm of a probability and its
weights, and a reward that is called valid exists and is nobody else's doing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from envkit.trajectory.digest import ids_digest
from envkit.trajectory.errors import BrokenInvariant
from envkit.trajectory.types import (
    Episode,
    Identity,
    Kind,
    Outcome,
    Sampling,
    Segment,
    Stop,
    Stream,
    Trajectory,
)

LOGPROB_MOST: Final = 1e-5
"""The logarithm of a probability, by how much a float32 log-softmax may be over 0."""

type Problem = tuple[str, str]
"""A field and what is wrong with it."""


def check(trajectory: Trajectory) -> None:
    """Check a row.

    Raises:
        BrokenInvariant: the first thing that does not hold.
    """
    row = trajectory.identity.trajectory_id
    _raise_first(row, _identity(trajectory.identity))
    check_episode(row, trajectory.episode, trajectory.identity.sampling)
    _raise_first(row, _outcome(trajectory.outcome, trajectory.episode.stop))


def check_episode(row: str, episode: Episode, sampling: Sampling) -> None:
    """Check what the loop saw, before anything is known of what it was worth.

    Raises:
        BrokenInvariant: the first thing that does not hold.
    """
    for problems in (_arrays, _segments, _sampled, _requests, _calls, _budgets):
        _raise_first(row, problems(episode))
    _raise_first(row, _alternatives(episode.stream, sampling))


def _raise_first(row: str, problems: Iterator[Problem]) -> None:
    for field, problem in problems:
        raise BrokenInvariant(row, field, problem)


# --- who ------------------------------------------------------------------------------------------


def _identity(identity: Identity) -> Iterator[Problem]:
    for field in ("trajectory_id", "group_id", "task"):
        if not getattr(identity, field):
            yield f"identity.{field}", "is empty"
    if identity.sample < 0:
        yield "identity.sample", f"is {identity.sample}; samples count from 0"


# --- the stream -----------------------------------------------------------------------------------

_DTYPES: Final[dict[str, Any]] = {
    "token_ids": np.dtype(np.int32),
    "loss_mask": np.dtype(np.bool_),
    "logprobs": np.dtype(np.float32),
    "weight_version": np.dtype(np.int32),
}


def _arrays(episode: Episode) -> Iterator[Problem]:
    stream = episode.stream
    for name, dtype in _DTYPES.items():
        array = getattr(stream, name)
        if array.dtype != dtype or array.ndim != 1:
            yield _at(name), f"is {array.dtype} of {array.ndim} axes, must be {dtype} of one"
        if len(array) != len(stream.token_ids):
            yield _at(name), f"has {len(array)} entries for {len(stream.token_ids)} tokens"
    if not len(stream.token_ids) and episode.stop is not Stop.FAULT:
        yield _at("token_ids"), f"is empty, and the stop is {episode.stop}"
    if len(stream.token_ids) and stream.token_ids.min() < 0:
        yield _at("token_ids"), "holds an id below 0"


def _segments(episode: Episode) -> Iterator[Problem]:
    end = turn = 0
    for index, segment in enumerate(episode.stream.segments):
        where = _at(f"segments[{index}]")
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
        yield _at("segments"), f"end at {end} of {len(episode.stream.token_ids)} tokens"
    for kind in (Kind.MODEL, Kind.TOOL):
        turns = [each.turn for each in _of(episode.stream, kind)]
        if len(turns) != len(set(turns)):
            yield _at("segments"), f"hold two of kind {kind} in one turn"


def _sampled(episode: Episode) -> Iterator[Problem]:
    stream = episode.stream
    mask = mask_of(stream.segments, len(stream.token_ids))
    if not np.array_equal(mask, stream.loss_mask):
        yield _at("loss_mask"), _first(mask != stream.loss_mask, "is not what the segments say")
    if not np.array_equal(np.isnan(stream.logprobs), ~mask):
        odd = np.isnan(stream.logprobs) == mask
        yield _at("logprobs"), _first(odd, "is NaN where sampled, or a number elsewhere")
    logprobs = stream.logprobs[mask]
    if len(logprobs) and not (logprobs.max() <= LOGPROB_MOST and math.isfinite(logprobs.min())):
        yield _at("logprobs"), f"are {logprobs.min():g} to {logprobs.max():g}"
    if len(mask) and stream.weight_version.min() < -1:
        yield _at("weight_version"), "holds one below -1"
    known = stream.weight_version >= 0
    if (known & ~mask).any():
        yield _at("weight_version"), _first(known & ~mask, "is set where nothing was sampled")


def _alternatives(stream: Stream, sampling: Sampling) -> Iterator[Problem]:
    ids, logprobs = stream.topk_ids, stream.topk_logprobs
    if ids is None or logprobs is None:
        if ids is not logprobs:
            yield _at("topk_ids"), "and topk_logprobs go together"
        return
    shape = (len(stream.token_ids), sampling.top_logprobs)
    if ids.shape != shape or ids.dtype != np.int32:
        yield _at("topk_ids"), f"is {ids.dtype} {ids.shape}, must be int32 {shape}"
    if logprobs.shape != shape or logprobs.dtype != np.float32:
        yield _at("topk_logprobs"), f"is {logprobs.dtype} {logprobs.shape}, must be float32 {shape}"
    if not np.array_equal(ids == -1, np.isnan(logprobs)) or (ids < -1).any():
        yield _at("topk_logprobs"), "must be NaN exactly where topk_ids is -1"
    if (ids[~stream.loss_mask] != -1).any():
        yield _at("topk_ids"), "is set where nothing was sampled"


def mask_of(segments: tuple[Segment, ...], length: int) -> Any:
    """True exactly on the model's segments."""
    mask = np.zeros(length, np.bool_)
    for segment in segments:
        if segment.kind is Kind.MODEL:
            mask[segment.start : segment.stop] = True
    return mask


# --- requests, calls, budgets ---------------------------------------------------------------------


def _requests(episode: Episode) -> Iterator[Problem]:
    models = _of(episode.stream, Kind.MODEL)
    if len(models) != len(episode.requests):
        yield "episode.requests", f"are {len(episode.requests)} for {len(models)} model segments"
    for index, (request, segment) in enumerate(zip(episode.requests, models, strict=False)):
        where = f"episode.requests[{index}]"
        for field, expected in {
            "turn": segment.turn,
            "finish": segment.finish,
            "sampled_tokens": segment.stop - segment.start,
            "prompt_tokens": segment.start,
        }.items():
            if getattr(request, field) != expected:
                found = getattr(request, field)
                yield f"{where}.{field}", f"is {found}, the segment says {expected}"
        yield from _times(where, request, "started_s", "first_token_s", "seconds")
        if request.tries < 1:
            yield f"{where}.tries", f"is {request.tries}"


def _calls(episode: Episode) -> Iterator[Problem]:
    turns = {each.turn for each in _of(episode.stream, Kind.MODEL)}
    shown = {
        each.turn: ids_digest(episode.stream.token_ids[each.start : each.stop])
        for each in _of(episode.stream, Kind.TOOL)
    }
    names = set[str]()
    for index, call in enumerate(episode.calls):
        where = f"episode.calls[{index}]"
        if not call.call_id or call.call_id in names:
            yield f"{where}.call_id", f"{call.call_id!r} is empty or not the only one"
        names.add(call.call_id)
        if call.turn not in turns:
            yield f"{where}.turn", f"is {call.turn}; the model sampled nothing in it"
        if call.observation_sha256 != shown.get(call.turn, ""):
            yield f"{where}.observation_sha256", "is not of the ids of its turn's observations"
        yield from _times(where, call, "started_s", "seconds", "cut_tokens")
    for index, fault in enumerate(episode.parse_faults):
        if fault.turn not in turns:
            yield f"episode.parse_faults[{index}].turn", f"is {fault.turn}; nothing was sampled"


def _budgets(episode: Episode) -> Iterator[Problem]:
    used, sampled = episode.used, int(episode.stream.loss_mask.sum())
    if used.sampled_tokens != sampled:
        yield "episode.used.sampled_tokens", f"is {used.sampled_tokens}, the stream says {sampled}"
    counts = ("turns", "tool_calls", "repairs", "own_s", "waited_s")
    yield from _times("episode.used", used, *counts)
    limits = ("turns", "tool_calls", "tokens_per_turn", "own_s", "tool_result_tokens", "repairs")
    yield from _times("episode.limits", episode.limits, "context_tokens", "nudge_ratio", *limits)
    texts = {"final_answer": episode.final_answer or ""}
    texts |= {f"calls[{n}].name": each.name for n, each in enumerate(episode.calls)}
    texts |= {f"parse_faults[{n}].message": f.message for n, f in enumerate(episode.parse_faults)}
    for name, text in texts.items():
        if not _is_unicode(text):
            yield f"episode.{name}", "holds half of a surrogate pair, which no file can"
    if episode.evaluation and used.nudged_at is not None:
        yield "episode.used.nudged_at", "is set, and in an evaluation no nudge is given"


# --- what it was worth ----------------------------------------------------------------------------


def _outcome(outcome: Outcome, stop: Stop) -> Iterator[Problem]:
    reward, fault = outcome.reward, outcome.fault
    if (outcome.verdict == "graded") != (reward is not None):
        yield "outcome.verdict", f"is {outcome.verdict}, and the reward {reward}"
    if reward is not None and not math.isfinite(reward):
        yield "outcome.reward", f"is {reward}"
    for name, value in outcome.rewards.items():
        if not math.isfinite(value):
            yield f"outcome.rewards[{name!r}]", f"is {value}"
    if stop is Stop.FAULT and fault is None:
        yield "outcome.fault", "is missing, and a fault ended the episode"
    if outcome.reward_valid and reward is None:
        yield "outcome.reward_valid", "is true, and there is no reward"
    if outcome.reward_valid and fault is not None and fault.owner != "model":
        yield "outcome.reward_valid", f"is true in spite of {fault.code} of the {fault.owner}"
    if outcome.loss_live and not outcome.reward_valid:
        yield "outcome.loss_live", "is true, and the reward is not valid"
    yield from _attempts(outcome)


def _attempts(outcome: Outcome) -> Iterator[Problem]:
    for index, attempt in enumerate(outcome.attempts):
        where = f"outcome.attempts[{index}]"
        if attempt.number != index + 1:
            yield f"{where}.number", f"is {attempt.number}; attempts count from 1"
        yield from _times(where, attempt, "started_at", "seconds")
    for name, seconds in outcome.phases.items():
        if not (math.isfinite(seconds) and seconds >= 0):
            yield f"outcome.phases[{name!r}]", f"is {seconds}"


# --- parts ----------------------------------------------------------------------------------------


def _at(field: str) -> str:
    return f"episode.stream.{field}"


def _of(stream: Stream, kind: Kind) -> list[Segment]:
    return [each for each in stream.segments if each.kind is kind]


def _times(where: str, record: object, *names: str) -> Iterator[Problem]:
    """Amounts and seconds: finite and not below 0."""
    for name in names:
        value = getattr(record, name)
        if not (math.isfinite(value) and value >= 0):
            yield f"{where}.{name}", f"is {value}"


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text)


def _first(odd: Any, problem: str) -> str:
    return f"{problem}: token {int(np.argmax(odd))}"
