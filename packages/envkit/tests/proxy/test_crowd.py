# SPDX-License-Identifier: Apache-2.0
"""Many conversations at once, named and not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI

from envkit.trajectory.types import Kind

from ..engines.scripted import Script, Turn
from .small import MODEL, USER, Proxied, chat, texts

FOLLOW = f"{Path(__file__).with_name('answering.py')}:follow"
TURNS = 3


async def converse(client: AsyncOpenAI, first: str) -> tuple[str, list[str], list[Any]]:
    """Id, answers and marks of a conversation of some turns."""
    messages: list[Any] = [{"role": "user", "content": first}]
    name, said, marks = "", list[str](), list[Any]()
    for turn in range(TURNS):
        raw = client.chat.completions.with_raw_response
        answer = await raw.create(model=MODEL, messages=messages)
        text = answer.parse().choices[0].message.content or ""
        name = answer.headers["x-trajectory-id"]
        marks.append(answer.headers.get("x-unproven"))
        said.append(text)
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": str(turn)}]
    return name, said, marks


@pytest.mark.parametrize("alike", [False, True])
def test_conversations_without_a_name_are_told_apart_by_their_messages(
    proxy: Proxied, alike: bool
) -> None:
    size = proxy.speaks.template.vocabulary_size
    proxy.engine.play(Script(function=FOLLOW, vocabulary=size))

    async def all_of_them() -> list[tuple[str, list[str], list[Any]]]:
        base = f"{proxy.url}/v1"
        async with AsyncOpenAI(base_url=base, api_key="none", max_retries=0) as client:
            names = ["the same" if alike else f"number {n}" for n in range(16)]
            return await asyncio.gather(*(converse(client, each) for each in names))

    told = asyncio.run(all_of_them())
    assert len({name for name, _, _ in told}) == 16
    for name, said, marks in told:
        assert marks == [None] * TURNS
        (row,) = proxy.end(name, reward=1.0)
        assert (row["turns"], row["reward_valid"]) == (TURNS, True)
        models = texts(proxy.speaks, proxy.row(name), Kind.MODEL)
        stop = proxy.speaks.template.decode([proxy.speaks.template.stop_ids[0]])
        assert [each.removesuffix(stop) for each in models] == said


def test_two_that_said_the_same_in_other_tokens_cannot_be_told_apart(proxy: Proxied) -> None:
    template = proxy.speaks.template
    letters = [each for letter in "tool" for each in template.encode(letter)]
    asked: list[Any] = [{"role": "user", "content": "say tool"}]
    with proxy.client() as client:
        for ids in (letters, template.encode("tool")):
            proxy.play(Turn(ids=[*ids, template.stop_ids[0]]))
            assert chat(client, asked).choices[0].message.content == "tool"
        more: Any = [*asked, {"role": "assistant", "content": "tool"}, USER]
        raw = client.chat.completions.with_raw_response
        answer = raw.create(model=MODEL, messages=more)
    assert answer.headers["x-unproven"] == "ambiguous"


def test_an_edited_history_belongs_to_the_conversation_it_was_edited_from(proxy: Proxied) -> None:
    proxy.play("first", "second", "third")
    asked: list[Any] = [{"role": "user", "content": "an edited history"}]
    with proxy.client() as client:
        raw = client.chat.completions.with_raw_response
        first = raw.create(model=MODEL, messages=asked)
        asked += [{"role": "assistant", "content": "first"}, USER]
        raw.create(model=MODEL, messages=asked)
        asked += [{"role": "assistant", "content": "not what was said"}, USER]
        third = raw.create(model=MODEL, messages=asked)
    name = first.headers["x-trajectory-id"]
    assert third.headers["x-trajectory-id"] == name
    assert third.headers["x-unproven"] == "answer_changed"
    assert [each["turns"] for each in proxy.end(name)] == [2, 1]
