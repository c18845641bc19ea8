# SPDX-License-Identifier: Apache-2.0
"""Evaluations compared task by task; the interval against scipy-free references and tables."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rltrain.evaluate.scores import Scores, difference, student

# Quantiles of Student's t as every table of them has them.
TABLE = {1: 12.706, 2: 4.303, 5: 2.571, 9: 2.262, 10: 2.228, 15: 2.131, 31: 2.0395, 120: 1.980}


@pytest.mark.parametrize(("freedom", "quantile"), TABLE.items())
def test_quantiles_are_those_of_the_tables(freedom: int, quantile: float) -> None:
    assert student(freedom) == pytest.approx(quantile, abs=6e-4)


def test_invalid_trials_count_as_zero_or_not_at_all() -> None:
    scores = Scores(rewards={"a": [1.0, None], "b": [0.5, 0.5], "c": [None, None]})
    assert scores.mean("as_zero") == pytest.approx((0.5 + 0.5 + 0.0) / 3)
    assert scores.mean("excluded") == pytest.approx((1.0 + 0.5) / 2)
    assert scores.invalid_share == 0.5
    assert scores.trials == 6


def test_a_rise_that_is_the_same_for_every_task_is_certain_however_hard_they_are() -> None:
    before = Scores(rewards={str(n): [n / 10] for n in range(8)})
    after = Scores(rewards={str(n): [n / 10 + 0.05] for n in range(8)})
    found = difference(before, after, "as_zero")
    assert found.rises
    assert found.low == pytest.approx(0.05)
    assert found.high == pytest.approx(0.05)


def test_tasks_that_only_one_of_them_has_are_left_out() -> None:
    before = Scores(rewards={"a": [0.0], "b": [0.0], "gone": [1.0]})
    after = Scores(rewards={"a": [1.0], "b": [1.0], "new": [0.0]})
    assert difference(before, after, "as_zero").tasks == 2
    with pytest.raises(ValueError, match="fewer than two tasks"):
        difference(before, Scores(rewards={"a": [1.0]}), "as_zero")


def test_of_two_evaluations_of_one_policy_about_one_in_twenty_differs() -> None:
    drawn = random.Random(0)

    def evaluated() -> Scores:
        return Scores(rewards={t: [drawn.random() for _ in range(8)] for t in map(str, range(32))})

    apart = [difference(evaluated(), evaluated(), "as_zero") for _ in range(1000)]
    outside = sum(each.low > 0 or each.high < 0 for each in apart)
    assert 30 <= outside <= 72  # 50 is expected; three deviations of a binomial are 21


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=20))
def test_the_interval_holds_the_mean_and_turns_with_its_sides(
    pairs: list[tuple[float, float]],
) -> None:
    first = Scores(rewards={str(n): [a] for n, (a, _) in enumerate(pairs)})
    second = Scores(rewards={str(n): [b] for n, (_, b) in enumerate(pairs)})
    there, back = difference(first, second, "as_zero"), difference(second, first, "as_zero")
    assert there.low <= there.mean <= there.high
    assert math.isclose(there.low, -back.high, abs_tol=1e-12)
