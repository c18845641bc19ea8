# SPDX-License-Identifier: Apache-2.0
"""Trajectories for tests: any valid one by hypothesis, or a realistic one by its seed."""

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from envkit.trajectory.digest import ids_digest
from envkit.trajectory.invariants import mask_of
from envkit.trajectory.types import (
    AttemptNote,
    CallRecord,
    EngineId,
    EngineRequest,
    Episode,
    FaultNote,
    Identity,
    Kind,
    Limits,
    Outcome,
    ParseFault,
    Sampling,
    Segment,
    Stop,
    Stream,
    Trajectory,
    Used,
)

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = st.text("abcdefghij-_0123456789é", min_size=1, max_size=12)
amounts = st.floats(0, 1e9, allow_nan=False)
codes = st.sampled_from(["malformed", "unclosed", "unknown_tool"])
OTHERS = ("sandbox", "server", "engine", "judge", "verifier", "unknown")


@st.composite
def layouts(draw: Any) -> tuple[Segment, ...]:
    """Segments of an episode: a prompt, then turns of which each may miss its end."""
    segments = [Segment(kind=Kind.PROMPT, start=0, stop=draw(st.integers(1, 30)), turn=0)]

    def add(kind: Kind, turn: int, **more: Any) -> None:
        start = segments[-1].stop
        stop = start + draw(st.integers(1, 30))
        segments.append(Segment(kind=kind, start=start, stop=stop, turn=turn, **more))

    for turn in range(draw(st.integers(0, 4))):
        add(Kind.MODEL, turn, finish=draw(st.sampled_from(["stop", "length", "abort"])))
        for kind in draw(st.sampled_from([(), ("harness",), ("tool",), ("harness", "tool")])):
            add(Kind(kind), turn)
    return tuple(segments)


@st.composite
def streams(draw: Any, layout: tuple[Segment, ...], topk: int) -> Stream:
    """Tokens over a layout, with weights that change inside a turn."""
    length = layout[-1].stop if layout else 0
    mask = mask_of(layout, length)
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    versions = np.sort(random.integers(-1, 5, length))
    logprobs = -random.exponential(2.0, length).astype(np.float32)
    alternatives: dict[str, Any] = {}
    if topk:
        ids = random.integers(-1, 1000, (length, topk)).astype(np.int32)
        ids[~mask] = -1
        found = -random.exponential(2.0, (length, topk)).astype(np.float32)
        alternatives = {
            "topk_ids": ids,
            "topk_logprobs": np.where(ids == -1, np.float32(np.nan), found),
        }
    return Stream(
        token_ids=random.integers(0, 2**31 - 1, length, np.int32),
        loss_mask=mask,
        logprobs=np.where(mask, logprobs, np.float32(np.nan)),
        weight_version=np.where(mask, versions, -1).astype(np.int32),
        segments=layout,
        **alternatives,
    )


@st.composite
def requests(draw: Any, segment: Segment) -> EngineRequest:
    """The request that sampled a segment."""
    assert segment.finish is not None
    return EngineRequest(
        turn=segment.turn,
        started_s=draw(amounts),
        first_token_s=draw(amounts),
        seconds=draw(amounts),
        prompt_tokens=segment.start,
        sampled_tokens=segment.stop - segment.start,
        finish=segment.finish,
        kv_version=draw(st.integers(-1, 9)),
        tries=draw(st.integers(1, 4)),
    )


@st.composite
def calls(draw: Any, stream: Stream, turn: int, number: int) -> CallRecord:
    """A call of a turn."""
    shown = [each for each in stream.segments if (each.kind, each.turn) == (Kind.TOOL, turn)]
    return CallRecord(
        call_id=f"call-{turn}-{number}",
        turn=turn,
        name=draw(words),
        ok=draw(st.booleans()),
        started_s=draw(amounts),
        seconds=draw(amounts),
        fingerprint=draw(words),
        observation_sha256=next(
            (ids_digest(stream.token_ids[each.start : each.stop]) for each in shown), ""
        ),
        code=draw(words),
        cut_tokens=draw(st.integers(0, 9999)),
    )


@st.composite
def episodes(draw: Any, sampling: Sampling) -> Episode:
    """What a loop may have seen."""
    stop = draw(st.sampled_from(Stop))
    empty = stop is Stop.FAULT and draw(st.booleans())
    stream = draw(streams(() if empty else draw(layouts()), sampling.top_logprobs))
    models = [each for each in stream.segments if each.kind is Kind.MODEL]
    evaluation = draw(st.booleans())
    turns = [each.turn for each in models]
    pairs = [(turn, number) for turn in turns for number in range(draw(st.integers(0, 2)))]
    faults = st.builds(ParseFault, turn=st.sampled_from(turns or [0]), code=codes, message=words)
    return Episode(
        stream=stream,
        stop=stop,
        limits=draw(st.builds(Limits, own_s=amounts, turns=st.integers(0, 99))),
        used=Used(
            turns=len(turns),
            tool_calls=len(pairs),
            sampled_tokens=int(stream.loss_mask.sum()),
            own_s=draw(amounts),
            waited_s=draw(amounts),
            nudged_at=None if evaluation else draw(st.none() | st.integers(0, 9)),
        ),
        requests=tuple(draw(requests(each)) for each in models),
        calls=tuple(draw(calls(stream, *pair)) for pair in pairs),
        parse_faults=tuple(draw(st.lists(faults, max_size=2))) if turns else (),
        final_answer=draw(st.none() | words),
        evaluation=evaluation,
    )


def notes(owners: tuple[str, ...]) -> Any:
    """Faults of these owners."""
    return st.builds(
        FaultNote, code=names, owner=st.sampled_from(owners), phase=words, message=words
    )


@st.composite
def outcomes(draw: Any, stop: Stop) -> Outcome:
    """What it may have been worth."""
    fault = draw(notes(("model", *OTHERS)) if stop is Stop.FAULT else st.none() | notes(OTHERS))
    reward = draw(st.none() | st.floats(-10, 10))
    may = reward is not None and (fault is None or fault.owner == "model")
    valid = may and draw(st.booleans())
    attempts = [
        AttemptNote(
            number=number,
            started_at=draw(amounts),
            seconds=draw(amounts),
            reward=draw(st.none() | st.floats(-10, 10)),
            reward_valid=draw(st.booleans()),
            fault=draw(st.none() | notes(OTHERS)),
        )
        for number in range(1, draw(st.integers(1, 3)))
    ]
    return Outcome(
        reward=reward,
        reward_valid=valid,
        loss_live=valid and draw(st.booleans()),
        rewards=draw(st.dictionaries(words, st.floats(-10, 10), max_size=3)),
        verdict="no_verdict" if reward is None else "graded",
        fault=fault,
        attempts=tuple(attempts),
        phases=draw(st.dictionaries(words, amounts, max_size=3)),
    )


@st.composite
def trajectories(draw: Any) -> Trajectory:
    """Any trajectory that keeps the invariants."""
    sampling = draw(
        st.builds(
            Sampling,
            temperature=amounts,
            seed=st.none() | st.integers(0, 2**62),
            logprobs_mode=st.sampled_from(["raw", "processed"]),
            top_logprobs=st.integers(0, 2),
        )
    )
    episode = draw(episodes(sampling))
    identity = Identity(
        trajectory_id=draw(names),
        group_id=draw(names),
        sample=draw(st.integers(0, 99)),
        task=draw(names),
        task_digest=draw(words),
        engine=draw(st.builds(EngineId, model=words, dtype=words)),
        sampling=sampling,
    )
    outcome = draw(outcomes(episode.stop))
    return Trajectory(identity=identity, episode=episode, outcome=outcome)


def trajectory(name: str = "task__000", *, seed: int = 0, turns: int = 3) -> Trajectory:
    """A plain trajectory with so many turns, each with one call; the same for the same seed."""
    random = np.random.default_rng(seed)
    segments = [Segment(kind=Kind.PROMPT, start=0, stop=40, turn=0)]
    for turn in range(turns):
        for kind in (Kind.MODEL, Kind.TOOL) if turn < turns - 1 else (Kind.MODEL,):
            start = segments[-1].stop
            finish = "stop" if kind is Kind.MODEL else None
            stop = start + int(random.integers(5, 40))
            segments.append(Segment(kind=kind, start=start, stop=stop, turn=turn, finish=finish))
    length = segments[-1].stop
    mask = mask_of(tuple(segments), length)
    logprobs = -random.exponential(1.0, length).astype(np.float32)
    stream = Stream(
        token_ids=random.integers(0, 151_643, length, np.int32),
        loss_mask=mask,
        logprobs=np.where(mask, logprobs, np.float32(np.nan)),
        weight_version=np.where(mask, 7, -1).astype(np.int32),
        segments=tuple(segments),
    )
    return Trajectory(
        identity=Identity(
            trajectory_id=name,
            group_id=name.partition("__")[0],
            sample=seed,
            task=name.partition("__")[0],
            engine=EngineId(model="tiny"),
        ),
        episode=_episode(stream, mask),
        outcome=Outcome(
            reward=0.5,
            reward_valid=True,
            loss_live=True,
            rewards={"reward": 0.5},
            verdict="graded",
            attempts=(
                AttemptNote(number=1, started_at=1e9, seconds=9.0, reward=0.5, reward_valid=True),
            ),
            phases={"act": 5.0, "grade": 1.0},
        ),
    )


def _episode(stream: Stream, mask: Any) -> Episode:
    models = [each for each in stream.segments if each.kind is Kind.MODEL]
    shown = [each for each in stream.segments if each.kind is Kind.TOOL]
    return Episode(
        stream=stream,
        stop=Stop.FINAL,
        limits=Limits(),
        used=Used(turns=len(models), tool_calls=len(shown), sampled_tokens=int(mask.sum())),
        requests=tuple(
            EngineRequest(
                turn=each.turn,
                started_s=1.0 + each.turn,
                first_token_s=0.1,
                seconds=0.5,
                prompt_tokens=each.start,
                sampled_tokens=each.stop - each.start,
                finish="stop",
            )
            for each in models
        ),
        calls=tuple(
            CallRecord(
                call_id=f"call-{each.turn}-1",
                turn=each.turn,
                name="read_file",
                ok=True,
                started_s=1.6 + each.turn,
                seconds=0.2,
                fingerprint="f" * 64,
                observation_sha256=ids_digest(stream.token_ids[each.start : each.stop]),
            )
            for each in shown
        ),
        final_answer="It rose by 2.1 %.",
    )


def with_stream(row: Trajectory, **changes: Any) -> Trajectory:
    """The same with another stream."""
    stream = replace(row.episode.stream, **changes)
    return replace(row, episode=replace(row.episode, stream=stream))


def with_alternatives(row: Trajectory, **changes: Any) -> Trajectory:
    """The same with one alternative a sampled token, or with those changed."""
    mask = row.episode.stream.loss_mask[:, None]
    right: dict[str, Any] = {
        "topk_ids": np.where(mask, 5, -1).astype(np.int32),
        "topk_logprobs": np.where(mask, -1.0, np.nan).astype(np.float32),
    }
    sampling = replace(row.identity.sampling, top_logprobs=1)
    row = replace(row, identity=replace(row.identity, sampling=sampling))
    return with_stream(row, **{**right, **{n: c(right[n]) for n, c in changes.items()}})


def same(left: Any, right: Any) -> bool:
    """Whether two records hold the same, NaN where the other has NaN, types of arrays included."""
    if isinstance(left, np.ndarray):
        return bool(
            left.dtype == right.dtype
            and left.shape == right.shape
            and left.tobytes() == right.tobytes()
        )
    if hasattr(left, "__dataclass_fields__"):
        return type(left) is type(right) and all(
            same(getattr(left, name), getattr(right, name)) for name in left.__dataclass_fields__
        )
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and left == right
