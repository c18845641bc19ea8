# SPDX-License-Identifier: Apache-2.0
"""What the real client is answered, and that the row is what the engine was asked and sampled."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from envkit.agent.types import Message, ToolSpec
from envkit.trajectory.types import Kind, Stop, Trajectory

from ..engines.scripted import Turn
from .small import (
    ADD,
    ASK,
    MODEL,
    READ,
    TOOLS,
    USER,
    Proxied,
    chat,
    proxied,
    results,
    texts,
    turns_of,
)

FAMILIES = ("qwen3", "qwen3_xml", "glm", "llama3", "hermes")


def play_tools(proxy: Proxied, name: str) -> list[Any]:
    """A conversation of parallel calls, one more call, and an answer; the last answer."""
    proxy.play([READ, ADD], READ, "It says <tool_call> hello.")
    with proxy.client(name) as client:
        messages: list[Any] = [*ASK]
        first = chat(client, messages, tools=TOOLS).choices[0]
        assert first.finish_reason == "tool_calls"
        messages += results(first.message, "a <|im_end|> b", "-1")
        second = chat(client, messages, tools=TOOLS).choices[0]
        messages += results(second.message, "")
        return [first, second, chat(client, messages, tools=TOOLS).choices[0]]


def expect_what_the_engine_saw(proxy: Proxied, row: Trajectory, lines: list[Any]) -> None:
    """The stream is each request's prompt with its sample behind it, and nothing else."""
    stream, bodies = row.episode.stream, proxy.asked()
    models = [each for each in stream.segments if each.kind is Kind.MODEL]
    turns = turns_of(proxy.speaks, lines)
    assert len(bodies) == len(models) == len(turns)
    for body, segment, turn in zip(bodies, models, turns, strict=True):
        assert stream.token_ids[: segment.start].tolist() == body["token_ids"]
        assert stream.token_ids[segment.start : segment.stop].tolist() == list(turn.ids)
    assert int(stream.loss_mask.sum()) == sum(len(each.ids) for each in turns)


@pytest.mark.parametrize("family", FAMILIES)
def test_tool_calls_go_on_with_the_same_tokens_in_every_family(family: str, tmp_path: Path) -> None:
    with proxied(tmp_path, family) as proxy:
        lines: list[Any] = [[READ, ADD], ADD, "done"]
        proxy.play(*lines)
        with proxy.client("one") as client:
            messages: list[Any] = [*ASK]
            for said in (("x", "y"), ("z",)):
                message = chat(client, messages, tools=TOOLS).choices[0].message
                messages += results(message, *said)
            assert chat(client, messages, tools=TOOLS).choices[0].message.content == "done"
        (told,) = proxy.end("one", reward=0.5)
        assert told["reward_valid"], told
        row = proxy.row("one")
        expect_what_the_engine_saw(proxy, row, lines)
        whole = proxy.speaks.template.prompt(
            [Message(role=cast("Any", each["role"]), content=each["content"]) for each in ASK],
            [_spec(each) for each in TOOLS],
        )
        assert row.episode.stream.token_ids[: len(whole)].tolist() == whole


def _spec(tool: dict[str, Any]) -> ToolSpec:
    function = tool["function"]
    return ToolSpec(
        name=function["name"],
        description=function["description"],
        parameters=function["parameters"],
    )


def test_answers_are_the_calls_and_texts_of_the_model(proxy: Proxied) -> None:
    first, second, last = play_tools(proxy, "answers")
    assert [each.function.name for each in first.message.tool_calls] == ["read_file", "add"]
    assert first.message.tool_calls[0].function.arguments == '{"path": "/a/Grüße \\"b\\".txt"}'
    assert first.message.content is None
    assert second.finish_reason == "tool_calls"
    assert last.finish_reason == "stop"


def test_a_row_has_segments_calls_requests_and_reward(proxy: Proxied) -> None:
    play_tools(proxy, "row")
    proxy.end("row", reward=1.0, rewards={"exact": 1.0}, task="reading", sample=3)
    row = proxy.row("row")
    kinds = [each.kind.value for each in row.episode.stream.segments]
    assert kinds == ["prompt", "model", "tool", "model", "tool", "model"]
    assert [each.name for each in row.episode.calls] == ["read_file", "add", "read_file"]
    assert [each.turn for each in row.episode.calls] == [0, 0, 1]
    assert row.episode.used.tool_calls == 3
    assert len(row.episode.requests) == 3
    assert (row.identity.task, row.identity.sample) == ("reading", 3)
    assert row.outcome.reward == 1.0
    assert row.outcome.reward_valid
    assert row.outcome.loss_live
    assert "<|im_end|> b" in texts(proxy.speaks, row, Kind.TOOL)[0]


def test_a_broken_call_beside_none_is_told_whole_and_named(proxy: Proxied) -> None:
    said = 'Hm. <tool_call>\n{"name": "add", "arguments": {"a": "x", "b": 1}}\n</tool_call>'
    proxy.play(said, "sorry")
    with proxy.client("broken") as client:
        choice = chat(client, [*ASK], tools=TOOLS).choices[0]
        assert (choice.finish_reason, choice.message.content) == ("stop", said)
        more = [choice.message.model_dump(), {"role": "user", "content": "a is a number"}]
        chat(client, [*ASK, *more], tools=TOOLS)
    assert proxy.end("broken", reward=0.0)[0]["reward_valid"]
    assert [(each.turn, each.code) for each in proxy.row("broken").episode.parse_faults] == [
        (0, "wrong_type")
    ]


def test_without_tools_a_text_is_as_the_model_said_it(proxy: Proxied) -> None:
    said = '  <tool_call>{"name": "add"}</tool_call>\n'
    proxy.play(said, "more")
    with proxy.client("text") as client:
        choice = chat(client, [*ASK]).choices[0]
        assert choice.message.content == said
        assert choice.message.tool_calls is None
        chat(client, [*ASK, {"role": "assistant", "content": said}, USER])
    assert proxy.end("text")[0]["turns"] == 2
    row = proxy.row("text")
    assert row.episode.stop is Stop.FINAL
    assert row.episode.final_answer == "more"
    assert (row.outcome.reward, row.outcome.reward_valid) == (None, False)


def test_thinking_is_apart_and_stays_in_the_stream(proxy: Proxied) -> None:
    proxy.play("<think>\nsecret\n</think>\n\nopen", "more")
    with proxy.client("think") as client:
        message = chat(client, [*ASK]).choices[0].message
        assert (message.content, message.reasoning_content) == ("open", "secret")
        chat(client, [*ASK, {"role": "assistant", "content": "open"}, USER])
    proxy.end("think", reward=1.0)
    row = proxy.row("think")
    assert row.outcome.reward_valid
    assert "secret" in texts(proxy.speaks, row, Kind.MODEL)[0]


def test_a_turn_that_was_cut_off_gets_its_stop_token_from_the_harness(proxy: Proxied) -> None:
    lines: list[Any] = ["one two three four", "five"]
    proxy.play(*lines)
    with proxy.client("cut") as client:
        choice = chat(client, [*ASK], max_tokens=3).choices[0]
        assert choice.finish_reason == "length"
        more = [choice.message.model_dump(), {"role": "user", "content": "go on"}]
        chat(client, [*ASK, *more])
    assert proxy.end("cut", reward=1.0)[0]["reward_valid"]
    stream = proxy.row("cut").episode.stream
    assert [each.kind.value for each in stream.segments] == [
        *("prompt", "model", "harness", "harness", "model")
    ]
    models = [each for each in stream.segments if each.kind is Kind.MODEL]
    assert (models[0].finish, models[0].stop - models[0].start) == ("length", 3)
    assert not stream.loss_mask[models[0].stop]


def test_tokens_that_no_tokenizer_would_give_stay_as_they_were(proxy: Proxied) -> None:
    template = proxy.speaks.template
    letters = [i for each in "tool" for i in template.encode(each)]
    stop = template.stop_ids[0]
    assert letters != template.encode("tool")
    turn = Turn(ids=[*letters, stop])
    proxy.play(turn, "more")
    with proxy.client("odd") as client:
        message = chat(client, [*ASK]).choices[0].message
        assert message.content == "tool"
        chat(client, [*ASK, message.model_dump(), USER])
    proxy.end("odd", reward=1.0)
    expect_what_the_engine_saw(proxy, proxy.row("odd"), [turn, "more"])


@pytest.mark.parametrize("lines", [[[READ, ADD]], ["Grüße"], ["<think>\nx\n</think>\n\ny"]])
def test_a_stream_put_together_is_the_whole_answer(proxy: Proxied, lines: list[Any]) -> None:
    proxy.play(*lines)
    name = f"stream{abs(hash(str(lines)))}"
    with proxy.client(f"{name}a") as client:
        whole = chat(client, [*ASK], tools=TOOLS)
    with proxy.client(f"{name}b") as client:
        options: Any = {"stream": True, "stream_options": {"include_usage": True}}
        chunks: list[Any] = list(chat(client, [*ASK], tools=TOOLS, **options))
    assert chunks[-1].usage == whole.usage
    choices = [each.choices[0] for each in chunks[:-1]]
    message = whole.choices[0].message
    assert "".join(each.delta.content or "" for each in choices) == (message.content or "")
    assert choices[-1].finish_reason == whole.choices[0].finish_reason
    calls: list[Any] = [c for each in choices for c in each.delta.tool_calls or list[Any]()]
    told = [(call.function.name, call.function.arguments) for call in calls]
    whole_calls: list[Any] = message.tool_calls or []
    wanted = [(call.function.name, call.function.arguments) for call in whole_calls]
    assert told == wanted
    assert [call.index for call in calls] == list(range(len(calls)))


def test_a_streamed_conversation_goes_on_as_well(proxy: Proxied) -> None:
    proxy.play("one", "two")
    with proxy.client("streamed") as client:
        parts: list[Any] = list(chat(client, [*ASK], stream=True))
        said = "".join(each.choices[0].delta.content or "" for each in parts)
        list(chat(client, [*ASK, {"role": "assistant", "content": said}, USER], stream=True))
    (told,) = proxy.end("streamed", reward=0.25)
    assert (told["turns"], told["reward_valid"]) == (2, True)
    expect_what_the_engine_saw(proxy, proxy.row("streamed"), ["one", "two"])


def test_usage_logprobs_and_ids_are_those_of_the_row(proxy: Proxied) -> None:
    proxy.play("Grüße")
    with proxy.client("usage") as client:
        answer = chat(client, [*ASK], logprobs=True, extra_body={"return_token_ids": True})
    proxy.end("usage")
    stream = proxy.row("usage").episode.stream
    start = len(answer.prompt_token_ids)
    assert stream.token_ids.tolist() == [*answer.prompt_token_ids, *answer.choices[0].token_ids]
    told = [each.logprob for each in answer.choices[0].logprobs.content]
    assert told == pytest.approx(stream.logprobs[start:].tolist())
    assert answer.usage.prompt_tokens == start
    assert answer.usage.completion_tokens == len(told)


def test_models_are_the_engines(proxy: Proxied) -> None:
    with proxy.client() as client:
        assert [each.id for each in client.models.list()] == [MODEL]
