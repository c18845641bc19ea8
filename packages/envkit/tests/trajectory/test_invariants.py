# SPDX-License-Identifier: Apache-2.0
"""Every invariant: what keeps them all passes, what breaks one is refused by row and field."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from envkit.fault import Phase, classify
from envkit.trajectory.errors import BrokenInvariant
from envkit.trajectory.invariants import check
from envkit.trajectory.types import FaultNote, Kind, ParseFault, Stop, Stream, Trajectory

from .rows import trajectories, trajectory, with_alternatives, with_stream

type Mutation = Callable[[Trajectory], Trajectory]

JUDGE = FaultNote(code="NoVerdict", owner="judge", phase="grade", message="")
EMPTY = {
    "token_ids": np.zeros(0, np.int32),
    "loss_mask": np.zeros(0, np.bool_),
    "logprobs": np.zeros(0, np.float32),
    "weight_version": np.zeros(0, np.int32),
    "segments": (),
}


@settings(deadline=None)  # other work on this machine slows single examples
@given(trajectories())
def test_any_valid_trajectory_passes(row: Trajectory) -> None:
    check(row)


def identity(**changes: Any) -> Mutation:
    return lambda row: replace(row, identity=replace(row.identity, **changes))


def outcome(**changes: Any) -> Mutation:
    return lambda row: replace(row, outcome=replace(row.outcome, **changes))


def episode(**changes: Any) -> Mutation:
    return lambda row: replace(row, episode=replace(row.episode, **changes))


def used(**changes: Any) -> Mutation:
    return lambda row: episode(used=replace(row.episode.used, **changes))(row)


def stream(**changes: Callable[[Any], Any] | Any) -> Mutation:
    """Each change is a value, or a function of the array it changes a copy of."""

    def mutate(row: Trajectory) -> Trajectory:
        old: Stream = row.episode.stream
        new = {name: each(getattr(old, name)) for name, each in changes.items()}
        return with_stream(row, **new)

    return mutate


def at(index: int, value: Any) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        array = array.copy()
        array[index] = value
        return array

    return change


def segment(index: int, **changes: Any) -> Mutation:
    def change(segments: Any) -> Any:
        new = list(segments)
        new[index] = replace(new[index], **changes)
        return tuple(new)

    return stream(segments=change)


def request(**changes: Any) -> Mutation:
    def mutate(row: Trajectory) -> Trajectory:
        first, *rest = row.episode.requests
        return episode(requests=(replace(first, **changes), *rest))(row)

    return mutate


def call(**changes: Any) -> Mutation:
    def mutate(row: Trajectory) -> Trajectory:
        first, *rest = row.episode.calls
        return episode(calls=(replace(first, **changes), *rest))(row)

    return mutate


def attempt(**changes: Any) -> Mutation:
    return lambda row: outcome(attempts=(replace(row.outcome.attempts[0], **changes),))(row)


def alternatives(k: int = 1, **changes: Any) -> Mutation:
    """Right ones, then changed, and said to be ``k`` a token."""

    def mutate(row: Trajectory) -> Trajectory:
        row = with_alternatives(row, **changes)
        sampling = replace(row.identity.sampling, top_logprobs=k)
        return replace(row, identity=replace(row.identity, sampling=sampling))

    return mutate


def constant(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


SAMPLED, SHOWN = 40, 39
"""The first token that is sampled, and the last before it."""

BROKEN: list[tuple[str, Mutation]] = [
    ("identity.trajectory_id", identity(trajectory_id="")),
    ("identity.group_id", identity(group_id="")),
    ("identity.task", identity(task="")),
    ("identity.sample", identity(sample=-1)),
    ("episode.stream.token_ids", stream(token_ids=lambda ids: ids.astype(np.int64))),
    ("episode.stream.token_ids", stream(token_ids=lambda ids: ids[:, None])),
    ("episode.stream.token_ids", stream(token_ids=at(3, -1))),
    (
        "episode.stream.token_ids",
        stream(**{name: constant(each) for name, each in EMPTY.items()}),
    ),
    ("episode.stream.loss_mask", stream(loss_mask=lambda mask: mask.astype(np.int8))),
    ("episode.stream.loss_mask", stream(loss_mask=lambda mask: mask[:-1])),
    ("episode.stream.loss_mask", stream(loss_mask=at(SAMPLED, False))),
    ("episode.stream.loss_mask", stream(loss_mask=at(SHOWN, True))),
    ("episode.stream.logprobs", stream(logprobs=lambda each: each.astype(np.float64))),
    ("episode.stream.logprobs", stream(logprobs=lambda each: each[1:])),
    ("episode.stream.logprobs", stream(logprobs=at(SAMPLED, np.nan))),
    ("episode.stream.logprobs", stream(logprobs=at(SAMPLED, -np.inf))),
    ("episode.stream.logprobs", stream(logprobs=at(SAMPLED, 0.01))),
    ("episode.stream.logprobs", stream(logprobs=at(SHOWN, -1.0))),
    ("episode.stream.weight_version", stream(weight_version=lambda each: each[1:])),
    ("episode.stream.weight_version", stream(weight_version=at(SHOWN, 0))),
    ("episode.stream.weight_version", stream(weight_version=at(SAMPLED, -2))),
    ("episode.stream.segments[0]", segment(0, kind=Kind.MODEL, finish="stop")),
    ("episode.stream.segments[0]", segment(0, start=1)),
    ("episode.stream.segments[1]", segment(1, start=SAMPLED + 1)),
    ("episode.stream.segments[1]", segment(1, stop=SAMPLED)),
    ("episode.stream.segments[1]", segment(1, finish=None)),
    ("episode.stream.segments[2]", segment(2, finish="stop")),
    ("episode.stream.segments[2]", segment(2, kind=Kind.PROMPT)),
    ("episode.stream.segments[3]", segment(2, turn=9)),
    ("episode.stream.segments", stream(segments=lambda each: each[:-1])),
    ("episode.stream.segments", segment(3, turn=0)),
    ("episode.stream.topk_ids", alternatives(k=2)),
    ("episode.stream.topk_ids", alternatives(topk_logprobs=constant(None))),
    ("episode.stream.topk_ids", alternatives(topk_ids=lambda ids: ids.astype(np.int64))),
    ("episode.stream.topk_logprobs", alternatives(topk_logprobs=lambda each: each[:-1])),
    ("episode.stream.topk_logprobs", alternatives(topk_ids=at(SAMPLED, -1))),
    ("episode.stream.topk_logprobs", alternatives(topk_logprobs=at(SAMPLED, 0.5))),
    (
        "episode.stream.topk_ids",
        alternatives(topk_ids=at(SHOWN, 5), topk_logprobs=at(SHOWN, -1.0)),
    ),
    ("episode.requests", lambda row: episode(requests=row.episode.requests[1:])(row)),
    ("episode.requests[0].turn", request(turn=1)),
    ("episode.requests[0].finish", request(finish="length")),
    ("episode.requests[0].sampled_tokens", request(sampled_tokens=1)),
    ("episode.requests[0].prompt_tokens", request(prompt_tokens=SAMPLED - 1)),
    ("episode.requests[0].seconds", request(seconds=float("nan"))),
    ("episode.requests[0].tries", request(tries=0)),
    ("episode.calls[0].call_id", call(call_id="")),
    ("episode.calls[1].call_id", call(call_id="call-1-1")),
    ("episode.calls[0].turn", call(turn=7)),
    ("episode.calls[0].observation_sha256", call(observation_sha256="0" * 64)),
    ("episode.calls[0].observation_sha256", call(observation_sha256="")),
    (
        "episode.calls[0].observation_sha256",
        lambda row: stream(token_ids=at(row.episode.stream.segments[2].start, 1))(row),
    ),
    ("episode.calls[0].seconds", call(seconds=-1.0)),
    (
        "episode.parse_faults[0].turn",
        episode(parse_faults=(ParseFault(turn=7, code="malformed", message=""),)),
    ),
    ("episode.final_answer", episode(final_answer="\ud800")),
    ("episode.used.sampled_tokens", used(sampled_tokens=1)),
    ("episode.used.waited_s", used(waited_s=-0.1)),
    (
        "episode.used.nudged_at",
        lambda row: episode(used=replace(row.episode.used, nudged_at=1), evaluation=True)(row),
    ),
    ("episode.limits.own_s", lambda r: episode(limits=replace(r.episode.limits, own_s=-1.0))(r)),
    ("outcome.verdict", outcome(verdict="no_verdict")),
    ("outcome.verdict", outcome(reward=None)),
    ("outcome.reward", outcome(reward=float("nan"))),
    ("outcome.rewards['reward']", outcome(rewards={"reward": float("inf")})),
    ("outcome.fault", episode(stop=Stop.FAULT)),
    ("outcome.reward_valid", outcome(reward=None, verdict="no_verdict")),
    ("outcome.reward_valid", outcome(fault=JUDGE)),
    ("outcome.loss_live", outcome(reward_valid=False)),
    ("outcome.attempts[0].number", attempt(number=0)),
    ("outcome.attempts[0].seconds", attempt(seconds=-1.0)),
    ("outcome.phases['act']", outcome(phases={"act": float("nan")})),
]


@pytest.mark.parametrize(
    ("field", "mutation"), BROKEN, ids=[f"{number}-{each[0]}" for number, each in enumerate(BROKEN)]
)
def test_what_breaks_one_is_refused_by_row_and_field(field: str, mutation: Mutation) -> None:
    with pytest.raises(BrokenInvariant) as caught:
        check(mutation(trajectory()))
    assert caught.value.field == field
    assert caught.value.row == mutation(trajectory()).identity.trajectory_id
    assert str(caught.value).count("\n") == 0


def test_the_models_own_fault_may_end_an_episode_with_a_valid_reward() -> None:
    own = FaultNote(code="KilledOwnBox", owner="model", phase="act", message="")
    check(outcome(fault=own)(episode(stop=Stop.FAULT)(trajectory())))


def test_alternatives_that_are_right_pass() -> None:
    check(alternatives()(trajectory()))


def test_a_broken_row_is_the_harnesses_fault_and_never_a_valid_reward() -> None:
    fault = classify(BrokenInvariant("a", "episode.stop", "is odd"), Phase.ACT)
    assert (fault.owner, fault.policy.reward_valid) == ("harness", False)
