# SPDX-License-Identifier: Apache-2.0
"""The order of tasks: a function of tasks, seed and number."""

from pathlib import Path

import pytest

from rltrain.buffer.types import SampleId
from rltrain.loop.prompts import Prompts, task_names
from rltrain.loop.trials import sample_id, trial_id
from rltrain.refused import Refused

TASKS = tuple(f"task-{number}" for number in range(7))


def prompts(seed: int = 0, epochs: int = 2, steps: int = 0) -> Prompts:
    return Prompts(tasks=TASKS, seed=seed, epochs=epochs, steps=steps)


def test_an_epoch_has_every_task_once_and_the_next_in_another_order() -> None:
    order = [prompts().at(number).task for number in range(2 * len(TASKS))]
    first, second = order[: len(TASKS)], order[len(TASKS) :]
    assert sorted(first) == sorted(second) == sorted(TASKS)
    assert first != second


def test_another_seed_is_another_order() -> None:
    assert [prompts(seed=1).at(n).task for n in range(7)] != [
        prompts().at(n).task for n in range(7)
    ]


def test_a_group_is_found_again_by_its_name() -> None:
    found = prompts().at(12)
    assert prompts().of(found.name) == found


def test_epochs_end_where_no_steps_are_asked_for() -> None:
    assert len(prompts(epochs=3)) == 21
    assert len(prompts(steps=5)) > 10**6


def test_a_directory_without_tasks_is_named(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="holds no tasks"):
        task_names(tmp_path)


@pytest.mark.parametrize("attempt", [0, 1, 12])
def test_a_trial_of_an_attempt_is_found_again_by_its_name(attempt: int) -> None:
    sample = SampleId(group="g000012", place=3, attempt=attempt)
    assert sample_id(trial_id(sample)) == sample


@pytest.mark.parametrize("name", ["eval-000000003-0-file-iris-02", "g12", "", "g000012-03-0x"])
def test_what_is_no_attempt_is_none(name: str) -> None:
    assert sample_id(name) is None
