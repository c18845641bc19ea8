# SPDX-License-Identifier: Apache-2.0
"""Tasks are chosen by how their rewards vary."""

from rltrain.evaluate.scores import Scores
from rltrain.evaluate.variance import by_variance

SCORES = Scores(
    rewards={
        "all": [1.0, 1.0, 1.0],
        "none": [0.0, 0.0, 0.0],
        "one": [0.0, 0.0, 1.0],
        "half": [0.0, 1.0, 0.5],
        "wide": [0.0, 1.0, 1.0, 0.0],
        "lost": [None, None, 1.0],
    }
)


def test_the_tasks_that_vary_most_come_first_and_those_that_do_not_are_named() -> None:
    found = by_variance(SCORES, 32)
    assert found.tasks == ("wide", "one", "half")
    assert found.constant == ("all", "lost", "none")


def test_no_more_are_chosen_than_are_wanted() -> None:
    assert by_variance(SCORES, 2).tasks == ("wide", "one")


def test_a_trial_without_a_valid_reward_is_no_reward_of_zero() -> None:
    assert by_variance(Scores(rewards={"a": [1.0, None, 1.0]}), 1).constant == ("a",)
