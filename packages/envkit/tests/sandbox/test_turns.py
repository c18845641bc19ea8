# SPDX-License-Identifier: Apache-2.0
"""So many trials work at once, the furthest first, and none holds a turn that it does not use."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from envkit.deadline import within
from envkit.sandbox.turns import Turns, at_work

NEVER = 1e9


def played[T](scene: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return asyncio.run(within("scene", 20, scene()))


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_the_furthest_goes_first_and_of_two_alike_the_earlier():
    async def scene() -> list[str]:
        turns, went = Turns(1, NEVER), []

        async def work(trial: str, rank: int) -> None:
            await turns.take(trial, rank)
            went.append(trial)
            turns.give(trial)

        await turns.take("first", 0)
        waiting = [
            asyncio.ensure_future(work(trial, rank))
            for trial, rank in (("a", 1), ("b", 3), ("c", 3), ("d", 2))
        ]
        await settle()
        turns.give("first")
        await asyncio.gather(*waiting)
        return went

    assert played(scene) == ["b", "c", "d", "a"]


def test_who_has_a_turn_has_it_anew_without_waiting():
    async def scene() -> int:
        turns = Turns(1, NEVER)
        await turns.take("a", 0)
        await turns.take("a", 1)
        return turns.taken

    assert played(scene) == 1


def test_a_turn_that_is_not_taken_anew_lapses():
    async def scene() -> str:
        turns = Turns(1, 0.01)
        await turns.take("sleeps", 0)
        await turns.take("next", 0)
        return "had its turn"

    assert played(scene) == "had its turn"


def test_a_wait_that_is_cancelled_holds_up_nobody():
    async def scene() -> str:
        turns = Turns(1, NEVER)
        await turns.take("a", 0)
        gone = asyncio.ensure_future(turns.take("gone", 9))
        kept = asyncio.ensure_future(turns.take("kept", 0))
        await settle()
        gone.cancel()
        await settle()
        turns.give("a")
        await kept
        return "had its turn"

    assert played(scene) == "had its turn"


def test_without_a_bound_nobody_waits():
    async def scene() -> int:
        turns = Turns(0, NEVER)
        for number in range(100):
            await turns.take(str(number), 0)
        return turns.taken

    assert played(scene) == 100


@given(st.integers(1, 4), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), max_size=30))
def test_never_more_than_there_are_places_and_everybody_in_the_end(
    places: int, steps: list[tuple[int, int]]
):
    async def scene() -> tuple[int, int]:
        turns, most, done = Turns(places, NEVER), 0, 0

        async def work(number: int, rank: int, yields: int) -> None:
            nonlocal most, done
            await turns.take(str(number), rank)
            for _ in range(yields):
                most = max(most, turns.taken)
                await asyncio.sleep(0)
            turns.give(str(number))
            done += 1

        await asyncio.gather(*(work(n, rank, y) for n, (rank, y) in enumerate(steps)))
        return most, done

    most, done = played(scene)
    assert most <= places
    assert done == len(steps)


@given(st.floats(0.1, 256), st.integers(0, 900))
def test_cores_bound_only_trials_that_work_on_them(cores: float, asked: int):
    assert at_work(None, cores, here=True) >= 1
    assert at_work(None, cores, here=False) == 0
    assert at_work(asked, cores, here=True) == at_work(asked, cores, here=False) == asked
