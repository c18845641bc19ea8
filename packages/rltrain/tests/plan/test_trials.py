# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from rltrain.plan.assumptions import Assumptions, LengthAssumptions, TimeAssumptions
from rltrain.plan.trials import Population, Trial, made_up, recorded
from rltrain.refused import Refused

from .rows import row, written

CONTEXT = 160_000


def trial(tokens: int, *, sampled: int = 100, waits_s: float = 0.0) -> Trial:
    return Trial(tokens=tokens, prompt=0, sampled=sampled, waits_s=waits_s, live=tokens / 2)


def test_the_same_assumptions_make_the_same_trials() -> None:
    one, other = (made_up(Assumptions(), CONTEXT, 20, 4, seed=3) for _ in range(2))
    assert one == other
    assert one != made_up(Assumptions(), CONTEXT, 20, 4, seed=4)
    assert one.drawn(50, 4, 1) == other.drawn(50, 4, 1)


def test_lengths_have_the_median_and_the_tail_that_are_assumed() -> None:
    told = Assumptions(lengths=LengthAssumptions(median=10_000, p95=40_000, by_prompt=0.1))
    tokens = sorted(each.tokens for each in made_up(told, CONTEXT, 2_000, 4, 0).trials)
    assert tokens[len(tokens) // 2] == pytest.approx(10_000, rel=0.05)
    assert tokens[len(tokens) * 95 // 100] == pytest.approx(40_000, rel=0.05)
    assert tokens[0] >= 2_000


def test_lengths_that_nobody_set_follow_the_context() -> None:
    small, large = (made_up(Assumptions(), each, 400, 4, 0) for each in (16_000, CONTEXT))
    assert large.mean("tokens") == pytest.approx(10 * small.mean("tokens"), rel=0.01)
    assert max(each.tokens for each in small.trials) <= 16_000


def test_a_trial_waits_for_its_start_and_for_the_tools_of_each_turn() -> None:
    told = Assumptions(
        lengths=LengthAssumptions(median=10_000, p95=10_000.01, sampled=0.5, prompt=2_000),
        time=TimeAssumptions(start_s=30, turn_tokens=1_000, tool_s=5),
    )
    for each in made_up(told, CONTEXT, 4, 2, 0).trials:
        assert each.sampled == pytest.approx(4_000, abs=2)
        assert each.waits_s in (30 + 4 * 5, 30 + 5 * 5)
        assert each.live == pytest.approx(6_000, abs=2)


def test_a_tail_below_the_median_is_refused() -> None:
    told = Assumptions(lengths=LengthAssumptions(median=10_000, p95=5_000))
    with pytest.raises(Refused, match=r"lengths\.p95: 5000 is below the median, 10000; set"):
        made_up(told, CONTEXT, 4, 2, 0)


def test_long_trials_are_met_more_often() -> None:
    """A trial of 30,000 live tokens that takes nine times as long is met nine times of ten."""
    long, short = trial(60_000, sampled=900), trial(2_000, sampled=100)
    population = Population(groups=((long, short),), source="")
    assert population.mean("live") == 15_500
    assert population.live() == 0.9 * 30_000 + 0.1 * 1_000


def test_a_group_with_too_few_samples_gives_some_twice() -> None:
    population = Population(groups=((trial(1), trial(2)), (trial(3),)), source="")
    drawn = population.drawn(4, 3, seed=0)
    assert [len(group) for group in drawn] == [3, 3, 3, 3]
    assert all(
        {each.tokens for each in group} <= {1, 2} or group == [trial(3)] * 3 for group in drawn
    )
    assert sum(group == [trial(3)] * 3 for group in drawn) == 2


# --- recorded -------------------------------------------------------------------------------------


def test_recorded_trials_are_as_long_and_wait_as_long_as_they_did(tmp_path: Path) -> None:
    """A prompt of 100, two turns of 50 in 2 s each, 30 of a tool between them, 20 s in all."""
    store = written(tmp_path / "trajectories", [row("a", 0), row("a", 1), row("b", 0)])
    found = recorded(store.parent)
    assert [len(group) for group in found.groups] == [2, 1]
    assert found.source == "3 trajectories of 2 prompts"
    (one,) = found.groups[1]
    assert (one.tokens, one.prompt, one.sampled, one.read) == (230, 100, 100, 130)
    assert one.waits_s == 20 - 4


def test_live_tokens_are_a_mean_over_time(tmp_path: Path) -> None:
    """2 s from 100 to 150, 4 s at 150, while the tool runs, and 2 s from 180 to 230."""
    (one,) = recorded(written(tmp_path, [row("a", 0)])).trials
    assert one.live == pytest.approx((2 * 125 + 4 * 150 + 2 * 205) / 8)


def test_only_valid_trials_count(tmp_path: Path) -> None:
    found = recorded(written(tmp_path, [row("a", 0), row("a", 1, valid=False)]))
    assert len(found.trials) == 1
    with pytest.raises(Refused, match="none of its 1 trajectories has a valid reward"):
        recorded(written(tmp_path / "other", [row("a", 1, valid=False)]))


@pytest.mark.parametrize("there", [True, False])
def test_a_directory_without_a_store_is_refused(tmp_path: Path, there: bool) -> None:
    place = tmp_path if there else tmp_path / "nowhere"
    with pytest.raises(Refused, match="no segment of a trajectory store is in it or below it"):
        recorded(place)
