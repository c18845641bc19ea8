# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from typing import Any

import pytest

from rltrain.buffer.config import BufferConfig
from rltrain.buffer.scheduler import Scheduler
from rltrain.buffer.types import Ended, Started, Synced, TrainerFree
from rltrain.refused import Refused

from .driven import Driver, attempt, names

CONFIG = BufferConfig(staleness=2, head_start=0)


def stopped() -> Driver:
    """A group is trained on, one is in the step that is being taken, one under way."""
    driver = Driver(CONFIG)
    driver.offer(*"abcde")
    driver.free()
    driver.end("a")
    driver.step()
    driver.end("b")
    return driver


def through_json(driver: Driver) -> dict[str, Any]:
    return json.loads(json.dumps(driver.scheduler.state(), allow_nan=False))


def test_groups_of_a_step_that_was_not_finished_are_in_the_buffer_again() -> None:
    driver = stopped()
    assert driver.scheduler.training == 2
    restored = Scheduler.restored(through_json(driver), CONFIG, slots=64)
    assert (restored.training, restored.buffered, restored.version) == (0, 2, 1)
    again = restored.on(TrainerFree(), driver.now_s)
    assert names(list(again)) == [("b",)]


def test_attempts_that_were_under_way_are_told_of_as_before() -> None:
    driver = stopped()
    restored = Scheduler.restored(through_json(driver), CONFIG, slots=64)
    assert restored.running == driver.scheduler.running
    for sample in restored.running:
        restored.on(Ended(sample=sample, outcome="fault", tokens=0), driver.now_s)
    assert {each.attempt for each in restored.running} == {1}


@pytest.mark.parametrize("oldest", [7, None])
def test_a_version_made_after_the_checkpoint_counts_as_that_of_the_checkpoint(
    oldest: int | None,
) -> None:
    driver = stopped()
    restored = Scheduler.restored(through_json(driver), CONFIG, slots=64)
    restored.on(TrainerFree(), driver.now_s)
    for place in (0, 1):
        lost = Ended(sample=attempt("d", place), outcome="fault", tokens=0)
        restored.on(lost, driver.now_s)
        sample = attempt("d", place, 1)
        restored.on(Started(sample=sample, version=7), driver.now_s)
        done = Ended(sample=sample, outcome="valid", tokens=1, reward=place, oldest=oldest)
        restored.on(done, driver.now_s)
    (group,) = [each for each in restored.state()["book"]["groups"].values() if each["left"] == 0]
    assert (group["name"], group["oldest"]) == ("d", 1)


def test_what_was_not_synced_is_not_taken_for_synced() -> None:
    restored = Scheduler.restored(through_json(stopped()), CONFIG, slots=64)
    with pytest.raises(ValueError, match="no version 2 was made"):
        restored.on(Synced(version=2), 99.0)


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({}, "it has form None, and this rltrain reads 1"),
        ({"form": 2}, "it has form 2, and this rltrain reads 1"),
        ({"form": 1, "book": {}}, "prompts: Field required"),
    ],
)
def test_another_form_is_refused(state: dict[str, Any], said: str) -> None:
    with pytest.raises(Refused, match=said):
        Scheduler.restored(state, CONFIG, slots=1)
