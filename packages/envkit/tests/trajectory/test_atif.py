# SPDX-License-Identifier: Apache-2.0
"""Exports as text: Harbor takes the ATIF, no token is lost in it, messages survive a round trip."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from envkit.audit.atif import read_atif
from envkit.trajectory.atif import to_atif
from envkit.trajectory.digest import ids_digest
from envkit.trajectory.errors import TrajectoryError
from envkit.trajectory.messages import (
    conversation,
    from_messages,
    to_document,
    to_messages,
)
from envkit.trajectory.text import Asked, CallText, Said, split_results, turns
from envkit.trajectory.types import FaultNote, Trajectory

from .rows import trajectories, trajectory, with_stream

LETTERS = range(1_000_000, 1_000_128)
"""Ids that are the characters of ASCII."""


def decode(ids: Sequence[int]) -> str:
    return "".join(chr(LETTERS.index(each) if each in LETTERS else 97 + each % 26) for each in ids)


def spoken(*texts: str) -> Trajectory:
    """A trajectory whose segments decode to these texts."""
    row = trajectory(turns=(len(texts) - 1) // 2 + 1)
    segments, ids, end = [], list[int](), 0
    for segment, text in zip(row.episode.stream.segments, texts, strict=True):
        segments.append(replace(segment, start=end, stop=end + len(text)))
        ids += [LETTERS[ord(each)] for each in text]
        end += len(text)
    mask = np.zeros(end, np.bool_)
    for each in segments:
        mask[each.start : each.stop] = each.kind == "model"
    row = with_stream(
        row,
        token_ids=np.array(ids, np.int32),
        loss_mask=mask,
        logprobs=np.where(mask, np.float32(-0.5), np.float32(np.nan)),
        weight_version=np.where(mask, 3, -1).astype(np.int32),
        segments=tuple(segments),
    )
    models = [each for each in segments if each.kind == "model"]
    tools = [each for each in segments if each.kind == "tool"]
    episode = replace(
        row.episode,
        requests=tuple(
            replace(old, prompt_tokens=each.start, sampled_tokens=each.stop - each.start)
            for old, each in zip(row.episode.requests, models, strict=True)
        ),
        calls=tuple(
            replace(
                old, observation_sha256=ids_digest(row.episode.stream.token_ids[t.start : t.stop])
            )
            for old, t in zip(row.episode.calls, tools, strict=True)
        ),
        used=replace(row.episode.used, sampled_tokens=int(mask.sum())),
    )
    return replace(row, episode=episode)


TALK = spoken(
    "<|im_start|>user\nHow much?<|im_end|>\n<|im_start|>assistant\n",
    '<think>look</think><tool_call>{"path": "a.txt"}</tool_call><|im_end|>',
    "\n<|im_start|>user\n<tool_response>\n12 apples\n</tool_response><|im_end|>\n",
    "Twelve.<|im_end|>",
)


def hear(text: str) -> Said:
    """Reads what TALK says."""
    text = text.removesuffix("<|im_end|>")
    head, _, call = text.partition("<tool_call>")
    arguments = json.loads(call.removesuffix("</tool_call>")) if call else None
    thinking, _, content = head.rpartition("</think>")
    calls = (Asked(name="read_file", arguments=arguments),) if arguments else ()
    return Said(content=content, thinking=thinking.removeprefix("<think>"), calls=calls)


def accepted(document: dict[str, Any]) -> Any:
    """What Harbor makes of it, after JSON."""
    from harbor.models.trajectories import Trajectory as Theirs
    from harbor.utils.trajectory_validator import TrajectoryValidator

    data = json.loads(json.dumps(document, allow_nan=False))
    validator = TrajectoryValidator()
    assert validator.validate(data), validator.errors
    return Theirs.model_validate(data)


@settings(deadline=None)
@given(trajectories())
def test_harbor_accepts_any_trajectory(row: Trajectory) -> None:
    accepted(to_atif(row.identity, row.episode, decode, outcome=row.outcome))


@settings(deadline=None)
@given(trajectories())
def test_every_token_stands_in_it_once(row: Trajectory) -> None:
    document = to_atif(row.identity, row.episode, decode)
    found: dict[int, list[int]] = {}
    for step in document["steps"]:
        extra = step["extra"]
        for place in (extra, extra.get("observation", {})):
            if "token_ids" in place:
                found[place["segment"]] = place["token_ids"]
        if "metrics" in step:
            found[extra["segment"]] = step["metrics"]["completion_token_ids"]
    ids = [each for index in sorted(found) for each in found[index]]
    assert ids == row.episode.stream.token_ids.tolist()
    written = json.dumps(document).count('token_ids": [')  # and no text that says so
    assert written == len(row.episode.stream.segments)


def test_a_turn_is_a_step_with_its_calls_its_results_and_what_was_sampled() -> None:
    row = replace(
        TALK,
        outcome=replace(
            TALK.outcome,
            fault=FaultNote(code="OutOfMemory", owner="model", phase="act", message="killed"),
        ),
    )
    theirs = accepted(to_atif(row.identity, row.episode, decode, outcome=row.outcome, hear=hear))
    prompt, asked, answered = theirs.steps
    assert (prompt.source, prompt.message.count("How much?")) == ("user", 1)
    assert (asked.reasoning_content, asked.message) == ("look", "")
    assert asked.tool_calls[0].arguments == {"path": "a.txt"}
    assert asked.observation.results[0].content == "12 apples"
    assert asked.metrics.logprobs == [-0.5] * asked.metrics.completion_tokens
    assert asked.metrics.extra["weight_versions"] == [[0, 3]]
    assert answered.message == "Twelve."
    assert theirs.extra["outcome"]["fault"]["code"] == "OutOfMemory"


def test_the_texts_of_calls_go_before_what_is_heard() -> None:
    texts = {"call-0-1": CallText(arguments={"path": "b.txt", "limit": None}, result="13 apples")}
    document = to_atif(TALK.identity, TALK.episode, decode, hear=hear, texts=texts)
    (call,) = accepted(document).steps[1].tool_calls
    assert call.arguments == {"path": "b.txt", "limit": None}
    assert document["steps"][1]["observation"]["results"][0]["content"] == "13 apples"


def test_arguments_that_nobody_read_are_said_to_be_unknown() -> None:
    step = to_atif(TALK.identity, TALK.episode, decode)["steps"][1]
    assert step["tool_calls"][0]["arguments"] == {}
    assert step["tool_calls"][0]["extra"]["arguments_known"] is False


def test_the_auditor_reads_calls_and_answer(tmp_path: Path) -> None:
    document = json.loads(json.dumps(to_atif(TALK.identity, TALK.episode, decode, hear=hear)))
    run = read_atif(tmp_path / "trajectory.json", tmp_path, document)
    assert [(each.tool, each.parsed, each.text, each.failure) for each in run.calls] == [
        ("read_file", {"path": "a.txt"}, "12 apples", None)
    ]
    assert (run.turns, run.answered) == (2, True)


@pytest.mark.parametrize(
    ("shown", "results"),
    [
        ("<tool_response>\na\n</tool_response>\n<tool_response>\nb\n</tool_response>", ["a", "b"]),
        ("<tool_response>\na</tool_response></tool_response>", None),
        ("<|start_header_id|>ipython<|end_header_id|>\n\na<|eot_id|>", None),
        ("unmarked", None),
    ],
)
def test_results_are_told_apart_only_where_the_marks_count_up(
    shown: str, results: list[str] | None
) -> None:
    assert split_results(shown, 2) == (results or [shown, None])


@settings(deadline=None)
@given(trajectories())
def test_a_conversation_survives_openai_messages(row: Trajectory) -> None:
    said = conversation(row.episode, decode)
    assume(said.messages)
    document = json.loads(json.dumps(to_document(said, row.identity, row.outcome)))
    assert from_messages(document) == said
    assert from_messages(document["messages"]) == said


def test_an_assistants_message_has_its_calls_and_each_call_its_answer() -> None:
    prompt = [("system", "Be brief."), ("user", "How much?")]
    messages = to_messages(conversation(TALK.episode, decode, hear=hear, prompt=prompt))
    assert [each["role"] for each in messages] == "system user assistant tool assistant".split()
    assert messages[2]["tool_calls"][0]["function"]["arguments"] == '{"path":"a.txt"}'
    assert messages[3] == {"role": "tool", "content": "12 apples", "tool_call_id": "call-0-1"}


def test_nothing_read_from_messages_has_tokens() -> None:
    read = from_messages([{"role": "assistant", "content": [{"type": "text", "text": "Yes."}]}])
    assert read.messages[0].content == "Yes."
    assert not {"token_ids", "logprobs", "loss_mask"} & set(read.__dataclass_fields__)


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({}, "messages: are not a list"),
        ([], "messages: are not a list"),
        ([3], r"messages\[0\]: is no object"),
        ([{"content": "a"}], r"messages\[0\]: has no role"),
        ([{"role": "user", "content": 3}], r"content: is neither text"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], r"content\[0\]: is no text"),
        ([{"role": "assistant", "tool_calls": 3}], "tool_calls: is no list"),
        ([{"role": "assistant", "tool_calls": [3]}], r"tool_calls\[0\]: is no object"),
    ],
)
def test_messages_that_cannot_be_read_say_where(document: Any, says: str) -> None:
    with pytest.raises(TrajectoryError, match=says):
        from_messages(document)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


@given(json_values)
def test_any_json_is_read_or_refused_by_name(document: Any) -> None:
    with suppress(TrajectoryError):
        from_messages(document)


def test_turns_have_what_followed_them() -> None:
    first, second = turns(TALK.episode, decode)
    assert [part.segment.kind for part in first.after] == ["tool"]
    assert second.after == ()
