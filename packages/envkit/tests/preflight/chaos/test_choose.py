# SPDX-License-Identifier: Apache-2.0
"""Which trials are struck: the same ones every time, exactly as many as were asked for."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.fault import HarnessError
from envkit.preflight.chaos.choose import choose, read_chosen, write_chosen
from envkit.preflight.chaos.rules import Rules, Wanted

TRIALS = [(f"{task}__{n:03d}", task) for n in range(50) for task in ("budget", "margin")]


def wanted(
    kind: str, *, count: int | None = None, rate: float = 0.0, phase: str = "call", task: str = "*"
) -> Wanted:
    return Wanted(kind=kind, phase=phase, count=count, rate=rate, task=task)


def rules(*each: Wanted, seed: int = 0) -> Rules:
    return Rules(seed=seed, hang_s=5.0, wanted=each)


@given(counts=st.lists(st.integers(1, 20), min_size=1, max_size=5), seed=st.integers())
def test_exactly_as_many_are_struck_as_were_counted(counts: list[int], seed: int) -> None:
    each = [wanted(f"kind-{n}", count=count) for n, count in enumerate(counts)]
    chosen = choose(rules(*each, seed=seed), TRIALS, "run")
    struck = [strike.trial for strike in chosen.strikes]
    assert len(struck) == len(set(struck)) == sum(counts)
    for n, count in enumerate(counts):
        assert sum(strike.kind == f"kind-{n}" for strike in chosen.strikes) == count


@given(seed=st.integers(), shuffled=st.permutations(TRIALS))
def test_the_order_of_trials_changes_nothing(seed: int, shuffled: list[tuple[str, str]]) -> None:
    asked = rules(wanted("reset", count=7), wanted("slow", rate=0.3), seed=seed)
    assert set(choose(asked, TRIALS, "r").strikes) == set(choose(asked, shuffled, "r").strikes)


def test_another_seed_strikes_others() -> None:
    asked = wanted("reset", count=10)
    first = {s.trial for s in choose(rules(asked, seed=1), TRIALS, "run").strikes}
    second = {s.trial for s in choose(rules(asked, seed=2), TRIALS, "run").strikes}
    assert first != second


def test_a_rate_is_a_share_of_the_trials() -> None:
    many = [(f"t__{n}", "t") for n in range(2000)]
    struck = choose(rules(wanted("reset", rate=0.1)), many, "run").strikes
    assert 140 < len(struck) < 260  # 200, and 4.5 standard deviations to either side


def test_only_the_named_tasks_are_struck() -> None:
    struck = choose(rules(wanted("reset", rate=1.0, task="bud*")), TRIALS, "run").strikes
    assert {strike.trial.split("__")[0] for strike in struck} == {"budget"}
    assert len(struck) == 50


def test_more_faults_than_trials_are_refused() -> None:
    asked = rules(wanted("slow", rate=1.0, task="margin"), wanted("reset", count=51))
    with pytest.raises(HarnessError, match="51 x reset in call are wanted and 50 trials are left"):
        choose(asked, TRIALS, "run")


def test_a_plan_is_read_back(tmp_path: Path) -> None:
    chosen = choose(rules(wanted("reset", count=3), seed=9), TRIALS, "token")
    path = tmp_path / "chaos" / "plan.json"
    write_chosen(path, chosen)
    assert read_chosen(path) == chosen


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "envkit.chaos/2"}'])
def test_what_is_no_plan_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(HarnessError, match="no plan of a chaos run"):
        read_chosen(path)
