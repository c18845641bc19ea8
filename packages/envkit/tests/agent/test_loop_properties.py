# SPDX-License-Identifier: Apache-2.0
"""Whatever a model says and its tools answer: the episode ends, fits, and is fit for the store."""

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from envkit.agent.types import Observation
from envkit.fault import OutOfMemory
from envkit.trajectory.types import Kind, Stop

from .small import END, ByteTemplate, Say, call, loop, played, seen

TEMPLATE = ByteTemplate()
LONGEST = 3000

texts = st.text(st.sampled_from("ab é漢\n</s>"), max_size=60)
lines = st.one_of(
    texts,
    st.just("CALL echo {"),
    st.just("CALL nothing {}"),
    st.builds(lambda n: call("long", size=n), st.integers(0, LONGEST)),
    st.just(call("refuse")),
    st.just(call("breaks")),
    st.builds(lambda answer: call("final_answer", answer=answer), texts),
)
turns = st.builds(
    lambda parts, seconds, queued: Say(
        text="\n".join(parts), seconds=seconds + queued, queued_s=queued
    ),
    st.lists(lines, max_size=4),
    st.floats(0, 20),
    st.floats(0, 20),
)
limits = st.fixed_dictionaries(
    {
        "context_tokens": st.integers(200, 4000),
        "tokens_per_turn": st.sampled_from([0, 1, 20, 200, 2000]),
        "turns": st.integers(0, 8),
        "tool_calls": st.integers(0, 8),
        "own_s": st.sampled_from([0.0, 30.0]),
        "tool_result_tokens": st.sampled_from([0, 10, 100, 5000]),
        "repairs": st.integers(1, 4),
        "nudge_ratio": st.sampled_from([0.0, 0.2, 0.9]),
        "evaluation": st.booleans(),
    }
)


def long(arguments: Mapping[str, Any]) -> str:
    return "é" * (int(arguments["size"]) // 2)


def tools(answers: bool) -> dict[str, Any]:
    belt: dict[str, Any] = {
        "echo": lambda a: str(a),
        "long": long,
        "refuse": lambda _: seen("no", ok=False, code="no", seconds=9.0),
        "breaks": lambda _: OutOfMemory("of 1 MiB"),
    }
    if answers:
        belt["final_answer"] = _answer
    return belt


def _answer(arguments: Mapping[str, Any]) -> Observation:
    return seen("", final=str(arguments["answer"]))


@settings(deadline=None, max_examples=300)
@given(st.lists(turns, min_size=1, max_size=6), limits, st.booleans())
def test_every_episode_ends_fits_and_is_whole(
    said: list[Say], limits: dict[str, Any], answers: bool
) -> None:
    playing = loop(*said * 40, "the end", tools=tools(answers), **limits)
    stop, episode = asyncio.run(played(playing))
    stream, used, most = episode.stream, episode.used, limits["context_tokens"]
    assert len(stream.token_ids) <= most
    asked = playing.engine.asked  # pyright: ignore[reportAttributeAccessIssue]
    assert all(each["max_tokens"] >= 1 for each in asked)
    assert all(len(each["ids"]) + each["max_tokens"] <= most for each in asked)
    ids = stream.token_ids.tolist()
    assert all(each["ids"] == ids[: len(each["ids"])] for each in asked)
    assert not limits["turns"] or used.turns <= limits["turns"]
    others = sum(each.name != "final_answer" for each in episode.calls)
    assert not limits["tool_calls"] or others <= limits["tool_calls"]
    assert used.repairs <= limits["repairs"]
    assert (episode.final_answer is not None) == (stop is Stop.FINAL)
    assert used.nudged_at is None or not limits["evaluation"]
    _check_answers(ids, [each for each in stream.segments if each.kind is not Kind.PROMPT])


def _check_answers(ids: list[int], segments: list[Any]) -> None:
    """Between two turns of the model there is an end of the first, and text that is not cut."""
    for before, after in itertools.pairwise(segments):
        if before.kind is Kind.MODEL and after.kind is not Kind.MODEL:
            assert ids[before.stop - 1] == END or ids[after.start] == END
        if after.kind is Kind.TOOL:
            assert "\ufffd" not in TEMPLATE.decode(ids[after.start : after.stop])
