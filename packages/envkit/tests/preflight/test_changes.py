# SPDX-License-Identifier: Apache-2.0
"""What a comparison names: real changes, and nothing where nothing changed."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envkit.preflight import significance
from envkit.preflight.changes import changes
from envkit.preflight.outcomes import Outcome, from_rows, to_rows
from envkit.preflight.types import Change

TASKS = {"quick": 1.0, "middle": 4.0, "slow": 20.0, "other": 2.0}
ROWS = st.lists(
    st.builds(
        Outcome,
        trial=st.text(max_size=5),
        task=st.sampled_from(["a", "b"]),
        concurrency=st.sampled_from([8, 64]),
        reward=st.sampled_from([None, 0.0, 0.5, 1.0]),
        attempts=st.just(2),
        faulted=st.integers(0, 2),
        seconds=st.floats(0, 100),
        phases=st.dictionaries(st.sampled_from(["act", "grade", "odd"]), st.floats(0, 9)),
        cpu_s=st.floats(0, 9),
        memory_mib=st.floats(0, 99),
    ),
    max_size=8,
)


def run_of(rng: random.Random, n: int, factor: float = 1.0) -> list[Outcome]:
    """``n`` trials over four tasks of unlike length, a quarter's noise on each."""

    def one(number: int) -> Outcome:
        task = list(TASKS)[number % len(TASKS)]
        act = TASKS[task] * rng.lognormvariate(0, 0.25) * factor
        grade, start = 0.5 * rng.lognormvariate(0, 0.25), 0.4 * rng.lognormvariate(0, 0.25)
        return Outcome(
            trial=f"{task}__{number:03d}",
            task=task,
            concurrency=64,
            reward=1.0,
            attempts=1,
            faulted=0,
            seconds=start + act + grade,
            phases={"start": start, "act": act, "grade": grade},
            cpu_s=1.6 * rng.lognormvariate(0, 0.1),
            memory_mib=55 * rng.lognormvariate(0, 0.05),
        )

    return [one(number) for number in range(n)]


def named(found: tuple[Change, ...], verdict: str) -> list[str]:
    return [change.measure for change in found if change.verdict == verdict]


def test_a_slow_down_of_30_percent_is_found_over_64_trials_and_is_all_that_is_named() -> None:
    rng = random.Random(1)
    found = changes(run_of(rng, 64), run_of(rng, 64, factor=1.3))
    assert named(found, "worse") == ["trial", "act"]
    assert named(found, "better") == []
    act = next(change for change in found if change.measure == "act")
    assert act.ratio.low < 1.3 < act.ratio.high
    assert act.ratio.low > 1.1


def test_the_same_slow_down_the_other_way_is_better() -> None:
    rng = random.Random(2)
    found = changes(run_of(rng, 64, factor=1.3), run_of(rng, 64))
    assert named(found, "better") == ["trial", "act"]
    assert named(found, "worse") == []


def test_where_nothing_differs_at_most_5_of_100_comparisons_name_anything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(significance, "RESAMPLES", 50)  # of the intervals, which name nothing
    rng, alarms, draws = random.Random(3), 0, 200
    for _ in range(draws):
        found = changes(run_of(rng, 64), run_of(rng, 64))
        alarms += any(change.verdict != "same" for change in found)
    assert alarms / draws <= 0.05 + 3 * (0.05 * 0.95 / draws) ** 0.5


def test_a_run_compared_with_itself_is_the_same_in_everything() -> None:
    rows = run_of(random.Random(4), 64)
    found = changes(rows, rows)
    assert [change.measure for change in found] == [
        "trial", "start", "act", "grade", "CPU", "memory", "faults",
        "reward of middle", "reward of other", "reward of quick", "reward of slow",
    ]  # fmt: skip
    assert {change.verdict for change in found} == {"same"}
    assert {change.ratio.value for change in found if change.unit} == {1.0}


def rewarded(rows: list[Outcome], rewards: Callable[[int], float | None]) -> list[Outcome]:
    return [replace(row, reward=rewards(n)) for n, row in enumerate(rows)]


def test_a_task_whose_reward_fell_is_named_and_no_other_is() -> None:
    before = run_of(random.Random(5), 64)
    now = [replace(row, reward=0.0) if row.task == "slow" else row for row in before]
    assert named(changes(before, now), "worse") == ["reward of slow"]
    assert named(changes(now, before), "better") == ["reward of slow"]


def test_partial_credit_that_fell_is_named_as_well() -> None:
    before = rewarded(run_of(random.Random(6), 64), lambda n: 0.75 if n % 8 < 4 else 1.0)
    now = rewarded(before, lambda n: 0.25 if n % 8 < 4 else 0.5)
    worse = named(changes(before, now), "worse")
    assert worse == ["reward of middle", "reward of other", "reward of quick", "reward of slow"]


def test_one_lost_reward_of_sixteen_proves_nothing() -> None:
    before = run_of(random.Random(7), 64)
    now = [replace(before[0], reward=0.0), *before[1:]]
    assert named(changes(before, now), "worse") == []


def test_a_higher_share_of_faults_is_named() -> None:
    before = run_of(random.Random(8), 64)
    now = [replace(row, faulted=1, phases={}) if n < 16 else row for n, row in enumerate(before)]
    (faults,) = [c for c in changes(before, now) if c.measure == "faults"]
    assert (faults.before, faults.now, faults.verdict) == (0.0, 0.25, "worse")


def test_more_cpu_and_memory_a_trial_are_named() -> None:
    before = run_of(random.Random(9), 64)
    now = [replace(r, cpu_s=1.2 * r.cpu_s, memory_mib=1.1 * r.memory_mib) for r in before]
    assert named(changes(before, now), "worse") == ["CPU", "memory"]


def test_what_only_one_run_did_is_not_compared() -> None:
    rows = run_of(random.Random(10), 64)
    crowd = [
        replace(r, concurrency=550, seconds=9 * r.seconds, faulted=1, reward=0.0) for r in rows
    ]
    assert changes(rows, crowd) == ()
    both = changes([*rows, *crowd], rows)
    assert {change.verdict for change in both} == {"same"}
    assert {change.n_before for change in both if change.measure == "faults"} == {64}


def test_a_few_milliseconds_more_are_never_named() -> None:
    before = [replace(r, phases={"setup": 0.001}) for r in run_of(random.Random(11), 64)]
    now = [replace(row, phases={"setup": 0.004}) for row in before]
    assert named(changes(before, now), "worse") == []


def test_a_change_of_one_percent_is_never_named_however_sure_it_is() -> None:
    before = [replace(row, memory_mib=120.0) for row in run_of(random.Random(14), 64)]
    now = [replace(row, memory_mib=121.0) for row in before]
    (memory,) = [change for change in changes(before, now) if change.measure == "memory"]
    assert memory.p_adjusted < 0.001
    assert memory.verdict == "same"


def test_memory_that_could_not_be_read_is_not_compared() -> None:
    rows = [replace(row, memory_mib=0.0) for row in run_of(random.Random(12), 8)]
    assert "memory" not in {change.measure for change in changes(rows, rows)}


@settings(deadline=None)  # two thousand resamples a measure
@given(ROWS, ROWS)
def test_any_two_runs_can_be_compared(before: list[Outcome], now: list[Outcome]) -> None:
    for change in changes(before, now):
        assert 0 <= change.p <= change.p_adjusted <= 1
        if change.ratio.value is not None:
            assert change.ratio.low <= change.ratio.value <= change.ratio.high


@given(ROWS)
def test_rows_survive_json(rows: list[Outcome]) -> None:
    assert from_rows(to_rows(rows)) == rows


@pytest.mark.parametrize("broken", [{}, {"trial": "x"}, {"attempts": "many"}])
def test_a_row_that_lacks_a_figure_is_refused(broken: dict[str, object]) -> None:
    whole = to_rows(run_of(random.Random(13), 1))[0]
    row = broken if len(broken) != 1 or "trial" in broken else {**whole, **broken}
    with pytest.raises((KeyError, TypeError, ValueError)):
        from_rows([row])
