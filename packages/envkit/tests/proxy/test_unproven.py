# SPDX-License-Identifier: Apache-2.0
"""What cannot be proven to go on begins a stream of its own, is marked, and is not trained on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from envkit.trajectory.types import Kind

from .small import ADD, ASK, READ, TOOLS, USER, Proxied, chat, results, status_of, texts, tool

type Change = Callable[[dict[str, Any]], None]


def _say(place: int, **fields: Any) -> Change:
    return lambda body: body["messages"][place].update(fields)


def _set(**fields: Any) -> Change:
    return lambda body: body.update(fields)


def _call(**fields: Any) -> Change:
    return lambda body: body["messages"][2]["tool_calls"][0]["function"].update(fields)


CHANGES: dict[str, tuple[str, Change]] = {
    "a word of the user": ("history_edited", _say(1, content="Grüße: what does /a/b.txt say!")),
    "white space of the user": ("history_edited", _say(1, content=USER["content"] + " ")),
    "the system prompt": ("system_changed", _say(0, content="You are careful")),
    "no system prompt": ("system_changed", lambda body: body["messages"].pop(0)),
    "a word of the answer": ("answer_changed", _say(2, content="Sure.")),
    "an id of a call": (
        "answer_changed",
        lambda b: b["messages"][2]["tool_calls"][0].update(id="x"),
    ),
    "a name of a call": ("answer_changed", _call(name="read")),
    "white space of arguments": (
        "answer_changed",
        _call(arguments='{"path":"/a/Grüße \\"b\\".txt"}'),
    ),
    "reasoning": ("answer_changed", _say(2, reasoning_content="I think")),
    "a tool more": ("tools_changed", _set(tools=[*TOOLS, tool("more")])),
    "a description": (
        "tools_changed",
        _set(tools=[TOOLS[0], tool("add", a="number", b="integer")]),
    ),
    "no tools": ("tools_changed", lambda body: body.pop("tools")),
    "the temperature": ("sampling_changed", _set(temperature=0.7)),
    "top_p": ("sampling_changed", _set(top_p=0.9)),
    "a seed": ("sampling_changed", _set(seed=3)),
    "a result less": ("unanswered_call", lambda body: body["messages"].pop()),
    "a result twice": (
        "unanswered_call",
        lambda body: body["messages"].append(body["messages"][-1]),
    ),
    "a result of nothing": ("unanswered_call", _say(4, tool_call_id="nothing")),
    "a system message at the end": (
        "other_messages",
        lambda body: body["messages"].append({"role": "system", "content": "hurry"}),
    ),
    "two users at the end": ("other_messages", lambda body: body["messages"].extend([USER, USER])),
    "an answer nobody gave": (
        "other_messages",
        lambda b: b["messages"].extend([{"role": "assistant", "content": "x"}, USER]),
    ),
    "an answer left out": (
        "asked_again",
        lambda body: body["messages"].__delitem__(slice(2, None)),
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_of_what_was_said_begins_a_marked_stream(proxy: Proxied, what: str) -> None:
    code, change = CHANGES[what]
    name = what.replace(" ", "-")
    proxy.play([READ, ADD], "done")
    with proxy.client(name) as client:
        message = chat(client, [*ASK], tools=TOOLS).choices[0].message
        messages: Any = [*map(dict, ASK), *results(message, "text", "-1")]
        body: dict[str, Any] = {"messages": messages, "tools": TOOLS}
        change(body)
        raw: Any = client.chat.completions.with_raw_response
        answer = raw.create(model="tiny", **body)
    assert answer.headers["x-unproven"] == code
    told = proxy.end(name, reward=1.0)
    assert [each["trajectory_id"] for each in told] == [name, f"{name}~2"]
    assert [each["reward_valid"] for each in told] == [False, False]
    assert [each["unproven"] for each in told if code not in each["unproven"]] == []
    second = proxy.row(f"{name}~2")
    assert (second.outcome.reward, second.outcome.loss_live) == (1.0, False)
    assert second.episode.used.turns == 1, "nothing the model said before is a sample of it"
    assert proxy.row(name).outcome.reward is None


def test_what_a_client_leaves_unchanged_but_says_otherwise_goes_on(proxy: Proxied) -> None:
    proxy.play("<think>\nx\n</think>\n\n", "done")
    with proxy.client("otherwise") as client:
        parts = [{"type": "text", "text": each["content"]} for each in ASK]
        chat(client, [*ASK])
        asked = [
            {"role": "developer", "content": [parts[0]]},
            {"role": "user", "content": [parts[1]], "name": None},
            {"role": "assistant", "content": None, "reasoning_content": "x", "audio": None},
            USER,
        ]
        chat(client, asked, user="somebody", metadata={"a": "b"}, max_tokens=50)
    (told,) = proxy.end("otherwise", reward=1.0)
    assert told["reward_valid"], told


def test_a_harness_that_has_others_work_for_it_goes_on_where_it_was(proxy: Proxied) -> None:
    proxy.play("one", "two")
    other = [{"role": "user", "content": "Sum up."}]
    with proxy.client("others") as client:
        said = chat(client, [*ASK]).choices[0].message.model_dump()
        chat(client, other)
        chat(client, [*ASK, said, USER])
    first, second = proxy.end("others", reward=1.0)
    assert (first["turns"], second["turns"]) == (2, 1)
    assert not first["reward_valid"]
    assert first["reward"] == 1.0, "it was answered last"
    assert "one of 2 streams" in first["unproven"]


def test_a_call_that_was_lost_between_others_ends_what_can_be_proven(proxy: Proxied) -> None:
    good = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
    proxy.play(f"{good}\n<tool_call>\n{{nothing}}\n</tool_call>", "done")
    with proxy.client("lost") as client:
        message = chat(client, [*ASK], tools=TOOLS).choices[0].message
        assert len(message.tool_calls) == 1
        chat(client, [*ASK, *results(message, "3")], tools=TOOLS)
    told = proxy.end("lost", reward=1.0)
    assert [each["unproven"].partition(":")[0] for each in told][1] == "call_lost"
    assert [each.code for each in proxy.row("lost").episode.parse_faults] == ["malformed"]


def test_a_history_from_elsewhere_is_a_prompt_and_never_a_sample(proxy: Proxied) -> None:
    proxy.play("done")
    with proxy.client("elsewhere") as client:
        chat(client, [*ASK, {"role": "assistant", "content": "said elsewhere"}, USER])
    (told,) = proxy.end("elsewhere", reward=1.0)
    assert told["unproven"].startswith("history_unknown")
    row = proxy.row("elsewhere")
    assert "said elsewhere" in texts(proxy.speaks, row, Kind.PROMPT)[0]
    assert row.episode.used.sampled_tokens == len(proxy.speaks.template.encode("done")) + 1


@pytest.mark.parametrize(
    "more",
    [
        {"n": 2},
        {"logit_bias": {"5": 1}},
        {"stop": ["\n"]},
        {"tool_choice": "required"},
        {"parallel_tool_calls": False},
        {"response_format": {"type": "json_object"}},
        {"top_logprobs": 3},
        {"reasoning_effort": "high"},
        {"something": 1},
        {"temperature": -1},
        {"temperature": "hot"},
        {"top_p": 0},
        {"max_tokens": 0},
        {"max_tokens": 1.5},
        {"messages": []},
        {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
        {"messages": [{"role": "user", "content": 5}]},
        {"messages": [{"role": "robot", "content": "x"}]},
        {"messages": ["x"]},
        {"messages": [USER, {"role": "assistant", "content": "x"}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"id": "a"}]}, USER]},
        {"messages": [{"role": "assistant", "tool_calls": 5}, USER]},
        {"tools": [{"type": "function"}]},
        {"tools": "all"},
    ],
    ids=str,
)
def test_what_is_not_carried_out_is_refused_and_asks_nobody(
    proxy: Proxied, more: dict[str, Any]
) -> None:
    proxy.play("done")
    status, error = status_of(
        f"{proxy.url}/t/refused/v1/chat/completions", {"messages": ASK, "model": "tiny", **more}
    )
    assert status == 400, error
    assert proxy.asked() == []
    assert status_of(f"{proxy.url}/t/refused/end", {})[0] == 404


def test_another_model_is_not_served(proxy: Proxied) -> None:
    status, error = status_of(
        f"{proxy.url}/v1/chat/completions", {"messages": ASK, "model": "gpt-5"}
    )
    assert (status, error["code"]) == (404, "model_not_found")
