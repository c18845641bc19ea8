# SPDX-License-Identifier: Apache-2.0
"""All of a step's time is in its parts, and once."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from rltrain.loop.seconds import Seconds


@dataclass
class Clock:
    """It stands still until it is put on."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def told(seconds: Seconds) -> dict[str, float]:
    return {name.removeprefix("seconds/"): value for name, value in seconds.told().items()}


def test_parts_and_what_is_in_none_come_to_the_total() -> None:
    clock = Clock()
    seconds = Seconds(clock)
    clock.now += 1.0
    with seconds.part("read"):
        clock.now += 2.0
    clock.now += 4.0
    with seconds.part("step"):
        clock.now += 8.0
    assert seconds.told() == {
        "seconds/read": 2.0,
        "seconds/step": 8.0,
        "seconds/other": 5.0,
        "seconds/total": 15.0,
    }


def test_a_part_that_comes_again_is_added_to() -> None:
    clock = Clock()
    seconds = Seconds(clock)
    for _ in range(3):
        with seconds.part("score"):
            clock.now += 2.0
    assert told(seconds) == {"score": 6.0, "other": 0.0, "total": 6.0}


def test_each_step_is_told_of_its_own_time() -> None:
    clock = Clock()
    seconds = Seconds(clock)
    with seconds.part("read"):
        clock.now += 2.0
    seconds.told()
    with seconds.part("checkpoint"):  # after a step was told of, and so of the next one
        clock.now += 3.0
    clock.now += 1.0
    assert told(seconds) == {"checkpoint": 3.0, "other": 1.0, "total": 4.0}
    assert told(seconds) == {"other": 0.0, "total": 0.0}


def test_a_part_that_fails_took_its_time_all_the_same() -> None:
    clock = Clock()
    seconds = Seconds(clock)

    def fail() -> None:
        with seconds.part("read"):
            clock.now += 2.0
            raise OSError

    with pytest.raises(OSError):  # noqa: PT011
        fail()
    assert told(seconds) == {"read": 2.0, "other": 0.0, "total": 2.0}
