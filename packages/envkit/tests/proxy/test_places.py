# SPDX-License-Identifier: Apache-2.0
"""Where a request belongs, whatever was said: properties, and what is bounded."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envkit.fault import EngineBusy
from envkit.proxy.types import NotServed

from .inside import Clock, answer, asked, crowd

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS.filter(lambda t: "CALL" not in t)), min_size=1, max_size=4))
def test_whatever_is_said_a_history_that_is_sent_back_as_it_was_goes_on(
    turns: list[tuple[str, str]],
) -> None:
    async def play() -> None:
        among = crowd(*(said for _, said in turns))
        messages: list[tuple[str, str]] = []
        for text, _ in turns:
            messages.append(("user", text))
            _, branch = among.place(asked(*messages), "one")
            told, _ = await branch.answer(asked(*messages))
            assert branch.mark is None
            messages.append(("assistant", told.content))
        (branch,) = among.open["one"].branches
        said = [each.sampled_tokens for each in branch.history.requests]
        assert said == [len(each.encode()) + 1 for _, each in turns]

    asyncio.run(play())


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_whatever_is_changed_of_a_history_begins_a_marked_stream(data: st.DataObject) -> None:
    turns = data.draw(st.lists(TEXTS, min_size=1, max_size=3))

    async def play() -> None:
        among = crowd(*turns, "last")
        messages: list[tuple[str, str]] = [("system", "be good")]
        for text in turns:
            messages.append(("user", text))
            _, branch = among.place(asked(*messages), "one")
            told, _ = await branch.answer(asked(*messages))
            messages.append(("assistant", told.content))
        place = data.draw(st.integers(0, len(messages) - 1))
        role, text = messages[place]
        messages[place] = role, data.draw(TEXTS.filter(lambda other: other != text))
        _, code = await answer(among, asked(*messages, ("user", "go on")), "one")
        wanted = {"system": "system_changed", "assistant": "answer_changed"}
        assert code == wanted.get(role, "history_edited")

    asyncio.run(play())


def test_two_requests_on_one_history_at_once_are_two_streams() -> None:
    async def play() -> list[Any]:
        among = crowd("a", "b", "c")
        await answer(among, asked(("user", "x")), "one")
        more = asked(("user", "x"), ("assistant", "a"), ("user", "y"))
        return await asyncio.gather(*(answer(among, more, "one") for _ in range(2)))

    assert asyncio.run(play()) == [("one", None), ("one", "concurrent")]


def test_the_same_first_request_at_once_is_two_conversations_where_none_is_named() -> None:
    async def play() -> list[Any]:
        among = crowd("a", "b")
        return await asyncio.gather(*(answer(among, asked(("user", "x"))) for _ in range(2)))

    (one, mark), (other, another) = asyncio.run(play())
    assert one != other
    assert (mark, another) == (None, None)


def test_a_first_request_that_failed_goes_on_where_none_is_named() -> None:
    async def play() -> int:
        among = crowd(EngineBusy("full"), "a")
        with pytest.raises(EngineBusy):
            await answer(among, asked(("user", "x")))
        assert (await answer(among, asked(("user", "x"))))[1] is None
        return len(among.open)

    assert asyncio.run(play()) == 1


def test_a_stream_that_was_never_answered_is_not_the_one_that_was_answered_last() -> None:
    async def play() -> list[bool]:
        among = crowd("a", EngineBusy("full"), "b")
        await answer(among, asked(("user", "x")), "one")
        with pytest.raises(EngineBusy):
            await answer(among, asked(("user", "y")), "one")
        home = among.open["one"]
        before = home.latest is home.branches[0]
        await answer(among, asked(("user", "y")), "one")
        return [before, home.latest is home.branches[1]]

    assert asyncio.run(play()) == [True, True]


def test_no_more_conversations_are_open_than_may_be() -> None:
    async def play() -> None:
        among = crowd("a", "b", "c", most=2)
        for name in ("one", "two"):
            await answer(among, asked(("user", name)), name)
        with pytest.raises(NotServed) as full:
            await answer(among, asked(("user", "x")), "three")
        assert full.value.status == 429
        await answer(among, asked(("user", "one"), ("assistant", "a"), ("user", "y")), "one")

    asyncio.run(play())


def test_no_more_streams_are_kept_of_a_conversation_than_may_be() -> None:
    async def play() -> None:
        among = crowd(*["a"] * 70)
        for number in range(64):
            await answer(among, asked(("user", str(number))), "one")
        with pytest.raises(NotServed, match="end it"):
            await answer(among, asked(("user", "one more")), "one")

    asyncio.run(play())


@pytest.mark.parametrize(("name", "status"), [("old", 409), ("../x", 400), ("a~2", 400)])
def test_a_name_that_cannot_be_a_new_conversations_is_refused(name: str, status: int) -> None:
    with pytest.raises(NotServed) as refused:
        crowd("a").place(asked(("user", "x")), name)
    assert refused.value.status == status


def test_idle_is_what_nothing_was_asked_of_for_so_long() -> None:
    async def play() -> None:
        clock = Clock()
        among = crowd("a", "b", clock=clock)
        await answer(among, asked(("user", "x")), "one")
        clock.now = 50.0
        await answer(among, asked(("user", "x")), "two")
        clock.now = 99.0
        assert among.idle(100.0) == []
        clock.now = 100.0
        assert [each.name for each in among.idle(100.0)] == ["one"]
        _, branch = among.place(asked(("user", "z")), "one")
        clock.now = 300.0
        branch.busy = True
        assert [each.name for each in among.idle(100.0)] == ["two"]

    asyncio.run(play())
