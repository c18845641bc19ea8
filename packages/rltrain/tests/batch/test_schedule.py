# SPDX-License-Identifier: Apache-2.0
"""Every group once an epoch, in batches as even as can be, by the number of the step alone."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rltrain.batch.schedule import Schedule
from rltrain.batch.source import Group


def groups(count: int) -> list[Group]:
    return [Group(name=f"task-{number}", rows=()) for number in range(count)]


def names(batch: list[Group]) -> list[str]:
    return [each.name for each in batch]


def epoch(schedule: Schedule, number: int = 0) -> list[list[str]]:
    """The batches of an epoch."""
    first = number * schedule.in_epoch
    return [names(schedule.batch(first + step)) for step in range(schedule.in_epoch)]


@st.composite
def schedules(draw: Any, order: str | None = None) -> Schedule:
    return Schedule(
        groups=groups(draw(st.integers(1, 60))),
        prompts=draw(st.integers(1, 20)),
        seed=draw(st.integers(0, 2**31)),
        epochs=draw(st.integers(1, 4)),
        steps=draw(st.integers(0, 40)),
        order=order or draw(st.sampled_from(["shuffled", "recorded"])),
    )


@given(schedule=schedules(), number=st.integers(0, 5))
def test_every_group_is_in_one_batch_of_each_epoch(schedule: Schedule, number: int) -> None:
    every = list(chain.from_iterable(epoch(schedule, number)))
    assert len(every) == len(schedule.groups)
    assert set(every) == {each.name for each in schedule.groups}


@given(schedule=schedules(), number=st.integers(0, 5))
def test_batches_are_as_few_and_as_even_as_can_be(schedule: Schedule, number: int) -> None:
    sizes = [len(each) for each in epoch(schedule, number)]
    assert 1 <= min(sizes) <= max(sizes) <= schedule.prompts
    assert max(sizes) - min(sizes) <= 1
    assert schedule.prompts * (len(sizes) - 1) < len(schedule.groups)


@given(schedule=schedules(), asked=st.lists(st.integers(0, 200), min_size=1, max_size=6))
def test_a_batch_is_a_function_of_the_number_of_its_step(
    schedule: Schedule, asked: list[int]
) -> None:
    there = [names(schedule.batch(step)) for step in asked]
    anew = replace(schedule, epochs=schedule.epochs + 3, steps=0)
    assert [names(anew.batch(step)) for step in reversed(asked)] == there[::-1]


@given(schedule=schedules("shuffled"), random=st.randoms(use_true_random=False))
def test_shuffled_batches_do_not_depend_on_the_order_of_the_listing(
    schedule: Schedule, random: Any
) -> None:
    other = list(schedule.groups)
    random.shuffle(other)
    listed = replace(schedule, groups=other)
    assert [epoch(listed, number) for number in (0, 1)] == [
        epoch(schedule, number) for number in (0, 1)
    ]


@given(schedule=schedules("recorded"), number=st.integers(0, 5))
def test_the_recorded_order_is_kept_in_every_epoch(schedule: Schedule, number: int) -> None:
    order = list(chain.from_iterable(epoch(schedule, number)))
    assert order == [each.name for each in schedule.groups]


@given(schedule=schedules())
def test_there_are_as_many_steps_as_epochs_hold_or_fewer_where_fewer_are_wished(
    schedule: Schedule,
) -> None:
    most = schedule.epochs * schedule.in_epoch
    assert len(replace(schedule, steps=0)) == most
    assert len(schedule) == (min(schedule.steps, most) if schedule.steps else most)


@pytest.mark.parametrize("seed", range(5))
def test_epochs_are_shuffled_anew(seed: int) -> None:
    schedule = Schedule(groups=groups(12), prompts=12, seed=seed, epochs=3)
    ways = {tuple(epoch(schedule, number)[0]) for number in range(3)}
    assert len(ways) == 3
    assert tuple(names(groups(12))) not in ways


def test_another_seed_is_another_order() -> None:
    orders = {
        tuple(epoch(Schedule(groups=groups(12), prompts=12, seed=seed, epochs=1))[0])
        for seed in range(8)
    }
    assert len(orders) == 8


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**31), count=st.integers(2, 30), data=st.data())
def test_a_group_that_is_taken_away_changes_the_order_of_no_others(
    seed: int, count: int, data: Any
) -> None:
    every = groups(count)
    gone = data.draw(st.sampled_from(every))
    whole, less = (
        Schedule(groups=kept, prompts=count, seed=seed, epochs=1)
        for kept in (every, [each for each in every if each is not gone])
    )
    assert [each for each in epoch(whole)[0] if each != gone.name] == epoch(less)[0]


@pytest.mark.parametrize(
    ("count", "prompts", "sizes"),
    [(16, 16, [16]), (17, 16, [8, 9]), (1, 16, [1]), (7, 3, [2, 2, 3]), (5, 1, [1] * 5)],
)
def test_what_is_left_over_is_spread_over_all_batches(
    count: int, prompts: int, sizes: list[int]
) -> None:
    schedule = Schedule(groups=groups(count), prompts=prompts, seed=3, epochs=1)
    assert [len(each) for each in epoch(schedule)] == sizes
