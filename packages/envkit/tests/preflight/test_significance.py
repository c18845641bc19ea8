# SPDX-License-Identifier: Apache-2.0
"""The tests of a comparison, held to published software, to brute force and to their own promise.

Reference probabilities were computed with SciPy 1.18.1: ``mannwhitneyu`` (exact; asymptotic without
continuity correction), ``permutation_test`` over all deals of the rank sum, ``fisher_exact``.
"""

import itertools
import random
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envkit.preflight.significance import (
    Stratum,
    fisher,
    holm,
    rank_test,
    ratio_of_medians,
    strata,
)

VALUES = st.lists(st.sampled_from([0.5, 1.0, 1.5, 2.0, 7.0]), min_size=1, max_size=3)
PAIRS = st.lists(st.builds(lambda a, b: pair(a, b), VALUES, VALUES), min_size=1, max_size=3)
UNHURRIED = settings(deadline=None)
SHARES = st.integers(0, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def pair(before: list[float], now: list[float]) -> Stratum:
    return Stratum(before=tuple(before), now=tuple(now))


def test_few_values_without_ties_get_the_exact_probability() -> None:
    before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
    now = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.061, 3.14, 1.2901]
    assert rank_test([pair(before, now)]) == pytest.approx(0.13591114767585355, rel=1e-12)


def test_few_values_with_ties_get_the_exact_probability() -> None:
    found = rank_test([pair([1, 2, 2, 3, 3, 3, 4, 5], [2, 3, 4, 4, 5, 5, 6])])
    assert found == pytest.approx(0.09976689976689977, rel=1e-12)


@pytest.mark.parametrize(
    ("digits", "probability"), [(1, 0.04902869111196965), (0, 0.051972255334032894)]
)
def test_many_values_get_the_normal_one_ties_taken_into_account(
    digits: int, probability: float
) -> None:
    before = [round(((i * 37) % 101) / 10, digits) for i in range(60)]
    now = [round(((i * 53) % 97) / 10 + 1.5, digits) for i in range(60)]
    assert rank_test([pair(before, now)]) == pytest.approx(probability, rel=1e-12)


@pytest.mark.parametrize(
    ("hits", "probability"),
    [
        ((3, 64, 0, 64), 0.24409448818897636),
        ((12, 20, 5, 22), 0.026530043432292538),
        ((1, 550, 9, 550), 0.02092762860579947),
        ((10, 10, 0, 10), 1.082508822446903e-05),
        ((0, 10, 0, 10), 1.0),
    ],
)
def test_shares_get_fishers_probability(
    hits: tuple[int, int, int, int], probability: float
) -> None:
    assert fisher(*hits) == pytest.approx(probability, rel=1e-12)


def by_hand(pairs: list[Stratum]) -> float:
    """Every deal of every stratum's values, its sums weighed as van Elteren did."""

    def sums(each: Stratum) -> list[float]:
        values = sorted((*each.before, *each.now))
        rank = {v: values.index(v) + (values.count(v) + 1) / 2 for v in values}
        pool, n = [rank[v] for v in (*each.now, *each.before)], len(each.now)
        middle = n * (len(pool) + 1) / 2
        return [(sum(deal) - middle) / (len(pool) + 1) for deal in itertools.combinations(pool, n)]

    every = [sums(each) for each in pairs]
    seen = abs(sum(each[0] for each in every))
    all_deals = [abs(sum(deal)) for deal in itertools.product(*every)]
    return sum(deal >= seen - 1e-9 for deal in all_deals) / len(all_deals)


@UNHURRIED
@given(PAIRS)
def test_over_several_strata_it_is_the_share_of_all_deals(pairs: list[Stratum]) -> None:
    assert rank_test(pairs) == pytest.approx(by_hand(pairs))


def test_many_values_of_several_strata_come_near_the_share_of_random_deals() -> None:
    rng = random.Random(5)
    pairs = [
        pair(*([scale * rng.uniform(add, 1 + add) for _ in range(n)] for add in (0, 0.1)))
        for scale, n in ((1, 30), (10, 12))
    ]
    assert rank_test(pairs) == pytest.approx(shuffled(pairs, rng), abs=0.02)


def shuffled(pairs: list[Stratum], rng: random.Random, draws: int = 4000) -> float:
    every: list[tuple[list[int], int]] = []
    for each in pairs:
        pool = [*each.now, *each.before]
        every.append(([sorted(pool).index(v) + 1 for v in pool], len(each.now)))

    def gap() -> float:
        return abs(sum((sum(r[:n]) - n * (len(r) + 1) / 2) / (len(r) + 1) for r, n in every))

    seen, hits = gap(), 0
    for _ in range(draws):
        for ranks, _n in every:
            rng.shuffle(ranks)
        hits += gap() >= seen
    return hits / draws


@UNHURRIED
@given(PAIRS)
def test_it_does_not_matter_which_side_is_called_before(pairs: list[Stratum]) -> None:
    turned = [Stratum(before=each.now, now=each.before) for each in pairs]
    assert rank_test(turned) == pytest.approx(rank_test(pairs))


@given(SHARES, SHARES)
def test_shares_may_change_places_as_well(one: tuple[int, int], other: tuple[int, int]) -> None:
    assert 0 < fisher(*one, *other) <= 1
    assert fisher(*one, *other) == pytest.approx(fisher(*other, *one))


def test_another_mix_of_slow_and_quick_tasks_is_no_difference() -> None:
    quick, slow = [1.0, 1.1, 1.2, 1.3], [9.0, 9.1, 9.2, 9.3]
    mixed = strata({"quick": quick, "slow": slow[:2]}, {"quick": quick[:2], "slow": slow * 4})
    assert rank_test(mixed) > 0.1
    assert rank_test([pair([*quick, *slow[:2]], [*quick[:2], *slow * 4])]) < 0.05


def test_a_kind_that_one_side_never_measured_is_not_compared() -> None:
    assert strata({"a": [1.0], "b": [1.0], "c": []}, {"a": [2.0], "c": [1.0]}) == [pair([1], [2])]


@pytest.mark.parametrize("n", [4, 12, 48])
def test_where_nothing_differs_5_of_100_comparisons_fall_below_5_percent(n: int) -> None:
    rng, alarms, draws = random.Random(n), 0, 400
    for _ in range(draws):
        sides = [[rng.lognormvariate(0, 0.4) for _ in range(n)] for _ in range(2)]
        alarms += rank_test([pair(*sides)]) < 0.05
    assert alarms / draws < 0.085  # three standard errors above 0.05


def test_holm_adjusts_as_published() -> None:
    """By hand: 5 times 0.005, 4 times 0.01, 3 times 0.03, which 2 times 0.04 does not exceed."""
    assert holm([0.01, 0.04, 0.03, 0.005, 0.2]) == pytest.approx([0.04, 0.09, 0.09, 0.025, 0.2])


@given(st.lists(st.floats(0, 1)))
def test_holm_keeps_the_order_and_never_lowers(values: list[float]) -> None:
    adjusted = holm(values)
    assert all(value <= found <= 1 for value, found in zip(values, adjusted, strict=True))
    order = sorted(range(len(values)), key=lambda n: values[n])
    assert [adjusted[n] for n in order] == sorted(adjusted)


def test_the_ratio_of_one_stratum_is_that_of_the_medians() -> None:
    before, now = [1.0, 2.0, 3.0], [2.0, 5.0, 5.5]
    found = ratio_of_medians([pair(before, now)], floor=0.001)
    assert found.value == median(now) / median(before)
    assert found.low <= found.value <= found.high


def test_tasks_of_unlike_length_slowed_alike_show_that_slow_down() -> None:
    before = {"quick": [1.0, 1.1, 1.2], "slow": [50.0, 55.0, 60.0], "middle": [7.0]}
    now = {task: [1.3 * value for value in values] for task, values in before.items()}
    found = ratio_of_medians(strata(before, now), floor=0.001)
    assert found.value == pytest.approx(1.3)
    assert found.high < 1.7


def test_what_is_below_the_floor_is_no_change() -> None:
    found = ratio_of_medians([pair([0.0, 1e-5], [4e-4, 5e-4])], floor=0.001)
    assert (found.value, found.low, found.high) == (1.0, 1.0, 1.0)


def test_without_values_there_is_no_ratio() -> None:
    assert ratio_of_medians([], floor=0.001).value is None
    assert rank_test([]) == 1.0


def test_the_interval_covers_the_true_ratio_as_often_as_it_says() -> None:
    rng, hits, draws = random.Random(3), 0, 200
    for n in range(draws):
        before = [rng.lognormvariate(0, 0.3) for _ in range(40)]
        now = [1.3 * rng.lognormvariate(0, 0.3) for _ in range(40)]
        found = ratio_of_medians([pair(before, now)], floor=0.001, seed=n)
        hits += found.low <= 1.3 <= found.high
    assert 0.90 < hits / draws < 1  # three standard errors below 0.95


def test_the_shortened_bootstrap_agrees_with_one_that_draws_every_value() -> None:
    rng = random.Random(8)
    before = [rng.lognormvariate(0, 0.5) for _ in range(25)]
    now = [rng.lognormvariate(0.3, 0.5) for _ in range(31)]
    drawn = sorted(
        median(rng.choices(now, k=31)) / median(rng.choices(before, k=25)) for _ in range(4000)
    )
    found = ratio_of_medians([pair(before, now)], floor=0.001)
    assert found.low == pytest.approx(drawn[100], rel=0.05)
    assert found.high == pytest.approx(drawn[3900], rel=0.05)
