# SPDX-License-Identifier: Apache-2.0
"""A plan has every sample once, none over the cap, as many micro-batches on every rank."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rltrain.batch.cost import Cost
from rltrain.batch.pack import Plan, TooLong, pack

COST = Cost(a=24_576.0, b=1.0)
CAP = 131_072


def lengths_of(plan: Plan, lengths: list[int]) -> list[list[list[int]]]:
    return [[[lengths[each] for each in bin_] for bin_ in rank] for rank in plan.ranks]


@given(
    lengths=st.lists(st.integers(1, CAP), min_size=8, max_size=60),
    ranks=st.integers(1, 8),
)
@settings(deadline=None, max_examples=200)
def test_any_plan_keeps_the_rules_and_counts_right(lengths: list[int], ranks: int) -> None:
    plan = pack(lengths, COST, cap=CAP, ranks=ranks)
    every = sorted(each for rank in plan.ranks for bin_ in rank for each in bin_)
    assert every == list(range(len(lengths)))
    shown = lengths_of(plan, lengths)
    assert all(0 < sum(bin_) <= CAP for rank in shown for bin_ in rank)
    assert [len(rank) for rank in plan.ranks] == [plan.rounds] * ranks
    costs = [[sum(map(COST.of, bin_)) for bin_ in rank] for rank in shown]
    makespan = sum(max(round_) for round_ in zip(*costs, strict=True))
    assert plan.makespan == pytest.approx(makespan)
    assert plan.bound == pytest.approx(
        max(sum(map(COST.of, lengths)) / ranks, max(map(COST.of, lengths)))
    )
    assert plan.makespan >= plan.bound * (1 - 1e-12)


@given(lengths=st.lists(st.integers(1, 5_000), min_size=4, max_size=40), seed=st.randoms())
@settings(deadline=None, max_examples=50)
def test_the_same_lengths_give_the_same_plan(lengths: list[int], seed: object) -> None:
    del seed
    assert pack(lengths, COST, cap=8_000, ranks=4) == pack(lengths, COST, cap=8_000, ranks=4)


def test_likes_go_side_by_side() -> None:
    plan = pack([100_000, 100_000, 1_000, 1_000], COST, cap=100_500, ranks=2)
    assert lengths_of(plan, [100_000, 100_000, 1_000, 1_000]) == [[[100_000], [1_000]]] * 2
    assert plan.makespan == pytest.approx(plan.bound)


def test_as_many_samples_as_ranks_are_one_each() -> None:
    plan = pack([10, 20, 30], COST, cap=1_000, ranks=3)
    assert sorted(plan.ranks) == [((0,),), ((1,),), ((2,),)]


def test_a_sample_that_does_not_fit_is_named() -> None:
    with pytest.raises(TooLong, match="sample 1 has 12 tokens, a micro-batch 10"):
        pack([1, 12, 11], COST, cap=10, ranks=1)


def test_fewer_samples_than_ranks_are_refused() -> None:
    with pytest.raises(ValueError, match="2 samples cannot keep 4 ranks busy"):
        pack([1, 2], COST, cap=10, ranks=4)
