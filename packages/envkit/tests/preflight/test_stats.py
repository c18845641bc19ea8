# SPDX-License-Identifier: Apache-2.0
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.preflight import stats

COUNTS = st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
UNIT = st.lists(st.floats(0, 1), min_size=1, max_size=60)
NUMBERS = st.lists(st.floats(0, 1e6), min_size=1, max_size=300)


@pytest.mark.parametrize(
    ("count", "n", "low", "high"),
    [
        # Newcombe 1998, Statistics in Medicine 17:857, table I, method 3 (score interval).
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_the_published_intervals(count: int, n: int, low: float, high: float) -> None:
    interval = stats.rate(count, n)
    assert (interval.low, interval.high) == (
        pytest.approx(low, abs=5e-5),
        pytest.approx(high, abs=5e-5),
    )


@given(COUNTS)
def test_a_rate_lies_in_its_interval_inside_zero_and_one(pair: tuple[int, int]) -> None:
    interval = stats.rate(*pair)
    assert 0 <= interval.low <= interval.value <= interval.high <= 1


@given(COUNTS)
def test_more_faults_never_lower_the_bound(pair: tuple[int, int]) -> None:
    count, n = pair
    if count < n:
        assert stats.rate(count, n).high <= stats.rate(count + 1, n).high + 1e-12


def test_the_interval_covers_the_true_rate_in_nearly_95_of_100_runs() -> None:
    rng, n, true = random.Random(7), 64, 0.2
    hits = 0
    for _ in range(2000):
        interval = stats.rate(sum(rng.random() < true for _ in range(n)), n)
        hits += interval.low <= true <= interval.high
    assert 0.93 < hits / 2000 < 0.97


def test_no_attempt_gives_no_rate() -> None:
    assert stats.rate(0, 0).value is None


@given(NUMBERS)
def test_quantiles_are_measured_values_in_order(values: list[float]) -> None:
    row = stats.quantiles(values)
    assert row.p50 <= row.p95 <= row.p99 <= row.max == max(values)
    assert {row.p50, row.p95, row.p99} <= set(values)
    assert sum(value <= row.p95 for value in values) >= 0.95 * len(values)


def test_p99_of_a_hundred_values_is_not_the_maximum() -> None:
    row = stats.quantiles(range(1, 101))
    assert (row.p50, row.p95, row.p99, row.max) == (50, 95, 99, 100)


def test_no_value_gives_no_quantiles() -> None:
    assert stats.quantiles([]) is None


@given(UNIT)
def test_the_mean_of_rewards_lies_in_its_interval_inside_zero_and_one(values: list[float]) -> None:
    interval, method = stats.mean_interval(values)
    assert 0 <= interval.low <= interval.value <= interval.high <= 1
    assert interval.value == pytest.approx(math.fsum(values) / len(values))
    assert method == ("Wilson" if set(values) <= {0.0, 1.0} or len(set(values)) == 1 else "t")


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1))
def test_rewards_of_0_and_1_are_a_share_and_get_the_interval_of_one(values: list[float]) -> None:
    interval, _ = stats.mean_interval(values)
    assert interval == stats.rate(int(sum(values)), len(values))


def test_partial_credit_gets_students_interval() -> None:
    interval, method = stats.mean_interval([0.5, 0.75, 0.5, 0.75])
    assert method == "t"
    half = 3.182 * math.sqrt(4 * 0.125**2 / 3 / 4)
    assert interval.low == pytest.approx(0.625 - half, abs=1e-4)
    assert interval.high == pytest.approx(0.625 + half, abs=1e-4)


def test_the_interval_of_partial_credit_covers_the_mean_as_often_as_it_says() -> None:
    rng, hits = random.Random(11), 0
    for _ in range(2000):
        values = [rng.choice([0.25, 0.5, 0.75]) for _ in range(20)]
        interval, _ = stats.mean_interval(values)
        hits += interval.low <= 0.5 <= interval.high
    assert 0.93 < hits / 2000 < 0.97


@pytest.mark.parametrize("reward", [1.0, 0.5, 0.0])
def test_equal_rewards_still_have_an_interval(reward: float) -> None:
    interval, method = stats.mean_interval([reward] * 6)
    assert interval.high - interval.low > 0.3
    assert method == "Wilson"


def test_rewards_outside_the_unit_range_get_an_interval_that_is_not_cut() -> None:
    interval, method = stats.mean_interval([-2.0, 0.0, 2.0])
    assert method == "t"
    assert interval.low == pytest.approx(-interval.high)
    assert interval.high == pytest.approx(4.3027 * 2 / math.sqrt(3), abs=1e-3)


@pytest.mark.parametrize(
    # Table of the t distribution, two sides 5 %: Fisher and Yates 1963, table III.
    ("freedom", "point"),
    [(1, 12.706), (2, 4.303), (5, 2.571), (6, 2.447), (7, 2.365), (10, 2.228), (29, 2.045),
     (60, 2.000), (120, 1.980), (100_000, 1.960)],
)  # fmt: skip
def test_students_points_are_the_published_ones(freedom: int, point: float) -> None:
    assert stats.t95(freedom) == pytest.approx(point, abs=6e-4)


@given(UNIT, st.integers(0, 50))
def test_the_bounds_hold_the_mean_whatever_the_invalid_rewards_were(
    valid: list[float], invalid: int
) -> None:
    rewards = stats.rewards(valid, invalid)
    assert rewards.n == len(valid)
    assert rewards.all_invalid_0 <= rewards.mean + 1e-12
    assert rewards.mean <= rewards.all_invalid_1 + 1e-12
    width = invalid / (len(valid) + invalid)
    assert rewards.all_invalid_1 - rewards.all_invalid_0 == pytest.approx(width)


def test_without_a_valid_reward_there_is_no_mean_but_there_are_bounds() -> None:
    rewards = stats.rewards([], 4)
    assert rewards.mean is None
    assert (rewards.all_invalid_0, rewards.all_invalid_1) == (0.0, 1.0)
