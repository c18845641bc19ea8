# SPDX-License-Identifier: Apache-2.0
"""Rewards among few trials and among many, task by task."""

from typing import Any

from envkit.preflight.same_rewards import difference_line, differences
from envkit.preflight.types import Difference


def of(make: Any, task: str, *rewards: float | None) -> list[Any]:
    specs = make.plan((task,), len(rewards)).specs
    return [
        make.record(spec, make.attempt(reward=reward))
        for spec, reward in zip(specs, rewards, strict=True)
    ]


def test_the_same_rewards_however_often_are_no_difference(make: Any) -> None:
    few = [*of(make, "a", 1.0), *of(make, "b", 0.5)]
    many = [*of(make, "b", 0.5, 0.5, 0.5), *of(make, "a", 1.0, 1.0)]
    assert differences(few, many) == ()


def test_one_other_reward_among_many_is_a_difference_of_its_task_alone(make: Any) -> None:
    few = [*of(make, "a", 1.0), *of(make, "b", 1.0)]
    many = [*of(make, "b", 1.0, 0.5, 1.0), *of(make, "a", 1.0)]
    found = differences(few, many)
    assert found == (Difference(task="b", few=(1.0,), many=(0.5, 1.0)),)
    assert difference_line(found, "alone", "at 550") == (
        "1 task not worth the same alone as at 550: b 1 alone and 0.5 or 1 at 550"
    )


def test_a_task_that_is_worth_more_among_many_differs_as_well(make: Any) -> None:
    assert [d.task for d in differences(of(make, "a", 0.5), of(make, "a", 1.0))] == ["a"]
    assert [d.task for d in differences(of(make, "a", 1.0), of(make, "a", 0.5))] == ["a"]


def test_a_task_that_earned_nothing_valid_among_many_differs(make: Any) -> None:
    (found,) = differences(of(make, "a", 1.0), of(make, "a", None, None))
    assert found == Difference(task="a", few=(1.0,), many=())
    assert "nothing valid at 64" in difference_line([found], "alone", "at 64")


def test_a_reward_that_was_lost_beside_one_that_was_earned_is_a_fault_and_no_difference(
    make: Any,
) -> None:
    assert differences(of(make, "a", 1.0), of(make, "a", None, 1.0)) == ()


def test_a_task_that_only_one_side_ran_is_not_compared(make: Any) -> None:
    assert differences(of(make, "a", 1.0), of(make, "b", 0.0)) == ()
