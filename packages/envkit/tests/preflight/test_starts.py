# SPDX-License-Identifier: Apache-2.0
"""Starts are bounded by how many are under way, not only by their rate."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from envkit.deadline import within
from envkit.pace import Pace
from envkit.preflight.starts import Starts, room

AT_ONCE = 1e6
"""Starts a second: a rate that holds up none."""


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_no_more_begin_than_there_is_room_for_until_one_is_up():
    async def scene() -> list[int]:
        starts, seen = Starts(2, Pace(AT_ONCE)), []
        waiting = [asyncio.ensure_future(starts.begin(f"t{n}")) for n in range(4)]
        await within("starts", 20, asyncio.gather(*waiting[:2]))
        await _settle()
        seen.append(starts.under_way)
        assert not waiting[2].done()
        starts.done("t0")
        await within("starts", 20, waiting[2])
        seen.append(starts.under_way)
        waiting[3].cancel()
        return seen

    assert asyncio.run(scene()) == [2, 2]


def test_giving_a_turn_back_twice_makes_no_room_for_two():
    async def scene() -> int:
        starts = Starts(1, Pace(AT_ONCE))
        await within("starts", 20, starts.begin("first"))
        starts.done("first")
        starts.done("first")
        starts.done("never began")
        await within("starts", 20, starts.begin("second"))
        third = asyncio.ensure_future(starts.begin("third"))
        await _settle()
        third.cancel()
        return starts.under_way

    assert asyncio.run(scene()) == 1


def test_a_turn_that_is_cancelled_while_it_waits_for_its_rate_is_given_back():
    async def scene() -> int:
        starts = Starts(1, Pace(1e-6))
        await within("starts", 20, starts.begin("at once"))
        starts.done("at once")
        waiting = asyncio.ensure_future(starts.begin("in a million seconds"))
        await _settle()
        waiting.cancel()
        await asyncio.wait([waiting])
        return starts.under_way

    assert asyncio.run(scene()) == 0


@given(st.integers(1, 2000), st.floats(0.1, 256))
def test_a_providers_starts_are_not_held_up_by_the_cores_of_this_machine(
    concurrency: int, cores: float
):
    assert room(concurrency, cores, here=False) == concurrency
    assert room(concurrency, cores, here=True) == room(1, cores, here=True) >= 1
