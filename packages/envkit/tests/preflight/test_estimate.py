# SPDX-License-Identifier: Apache-2.0
"""Hours and sandbox-hours of a planned run, against sums done by hand and runs played in full."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.fault import HarnessError
from envkit.preflight.estimate import Training, estimate, lines, parse_training, step_s

PHASES = {"start": 1.0, "gateway": 1.0, "hold": 50.0, "act": 6.0, "grade": 2.0}
"""Ten seconds of a slot; the wait at the barrier is none of a training run's."""


def records_of(make: Any, n: int, **changes: Any) -> list[Any]:
    plan = make.plan(("fact",), n)
    return [make.record(spec, make.attempt(phases=PHASES, **changes)) for spec in plan.specs]


def test_equal_trials_take_what_arithmetic_says(make: Any) -> None:
    training = parse_training("steps=36,prompts=10,samples=10")
    found = estimate(records_of(make, 8), training, concurrency=25)
    assert found is not None
    assert found.trials == 3600
    assert found.hours.value == pytest.approx(36 * 4 * 10 / 3600)  # four waves a step
    assert found.hours_async.value == pytest.approx(3600 * 10 / 25 / 3600)
    assert found.sandbox_hours == pytest.approx({"agent": 10, "gateway": 10, "verifier": 2})
    assert (found.attempts.value, found.invalid.value) == (3600, 0)


def test_a_step_of_fewer_trials_than_slots_takes_as_long_as_its_last_one(make: Any) -> None:
    found = estimate(records_of(make, 8), Training(steps=360, prompts=4, samples=4), 550)
    assert found is not None
    assert found.hours.value == pytest.approx(1.0)


def test_trials_that_ran_twice_take_their_slot_twice_and_are_counted(make: Any) -> None:
    records = records_of(make, 7)
    spec = make.plan(("fact",), 8).specs[7]
    died = make.attempt(phases={"start": 10.0}, reward=None, faults=(make.fault(),))
    records.append(make.record(spec, died, make.attempt(2, phases=PHASES)))
    found = estimate(records, Training(steps=10, prompts=8, samples=1), 8)
    assert found is not None
    assert found.attempts.value == pytest.approx(80 * 9 / 8)
    assert found.attempts.low > 80
    assert found.hours_async.value == pytest.approx(10 * (7 * 10 + 20) / 8 / 3600)
    assert found.hours_async.low < found.hours_async.value < found.hours_async.high
    assert found.hours.value > found.hours_async.value


def test_lost_rewards_are_expected_with_their_uncertainty(make: Any) -> None:
    records = records_of(make, 6) + records_of(make, 2, reward=None, faults=(make.fault(),))
    found = estimate(records, Training(steps=1, prompts=100, samples=1), 8)
    assert found is not None
    assert found.invalid.value == 25
    assert 5 < found.invalid.low < 25 < found.invalid.high < 70


def test_an_environment_without_a_gateway_has_no_gateway_hours(make: Any) -> None:
    plan = make.plan(("fact",), 2)
    phases = {"start": 1.0, "act": 1.0, "grade": 2.0}
    records = [make.record(spec, make.attempt(phases=phases)) for spec in plan.specs]
    found = estimate(records, Training(steps=9, prompts=10, samples=10), 2)
    assert found is not None
    assert found.sandbox_hours == pytest.approx({"agent": 1.0, "gateway": 0.0, "verifier": 0.5})


def test_where_nothing_was_begun_nothing_is_estimated(make: Any) -> None:
    unrun = make.record(make.plan(("fact",), 1).specs[0], make.attempt(started_at=0.0))
    assert estimate([unrun], Training(steps=1, prompts=1, samples=1), 1) is None


def test_the_hours_agree_with_a_run_played_slot_by_slot(make: Any) -> None:
    """Another way to play it: events in time over a pool of slots, two hundred whole steps."""
    rng = random.Random(4)
    took = [rng.lognormvariate(2, 0.6) for _ in range(64)]
    plan = make.plan(("fact",), 64)
    records = [
        make.record(spec, make.attempt(phases={"act": seconds}))
        for spec, seconds in zip(plan.specs, took, strict=True)
    ]
    found = estimate(records, Training(steps=200, prompts=16, samples=16), 64)
    assert found is not None
    played = sum(played_step([rng.choice(took) for _ in range(256)], 64) for _ in range(200))
    assert found.hours.value == pytest.approx(played / 3600, rel=0.05)
    assert found.hours.low < played / 3600 < found.hours.high


def played_step(waiting: list[float], slots: int) -> float:
    running: list[float] = []
    now = 0.0
    while waiting or running:
        while waiting and len(running) < slots:
            running.append(now + waiting.pop())
        now = min(running)
        running.remove(now)
    return now


@given(st.integers(1, 50), st.integers(1, 20), st.integers(1, 20), st.integers(1, 64))
def test_waiting_never_takes_less_than_the_work_nor_than_the_longest_trial(
    steps: int, prompts: int, samples: int, slots: int
) -> None:
    rng = random.Random(steps)
    took = [rng.uniform(0.1, 9) for _ in range(prompts * samples)]
    seconds = step_s(took, slots)
    assert seconds >= max(took) - 1e-9
    assert seconds >= sum(took) / slots - 1e-9
    assert seconds <= sum(took) / slots + max(took) + 1e-9


def test_the_same_seed_gives_the_same_estimate(make: Any) -> None:
    records = records_of(make, 4) + records_of(make, 4, number=2)
    training = Training(steps=3, prompts=3, samples=3)
    assert estimate(records, training, 4, seed=1) == estimate(records, training, 4, seed=1)


def test_the_lines_say_what_it_takes_and_what_it_leaves_out(make: Any) -> None:
    found = estimate(records_of(make, 8), parse_training("steps=36,prompts=10,samples=10"), 25)
    assert found is not None
    text = "\n".join(lines(found))
    assert "36 steps of 10 prompts x 10 samples: 3,600 trials, 25 at once: 0.40 h" in text
    assert "22.0 sandbox-hours (agent 10.0, gateway 10.0, verifier 2.0)" in text
    assert "--think-time" in text


@pytest.mark.parametrize("text", ["samples=2, steps=3,prompts=4", "steps=3,prompts=4,samples=2"])
def test_the_parts_may_come_in_any_order(text: str) -> None:
    assert parse_training(text) == Training(steps=3, prompts=4, samples=2)


@pytest.mark.parametrize(
    "text",
    [
        "", "200x16x16", "steps=1,prompts=1", "steps=1,prompts=1,samples=0",
        "steps=1,prompts=1,samples=-1", "steps=1,prompts=1,samples=1,steps=2",
        "steps=1,prompts=1,samples=1.5", "steps=1,prompts=1,samples=1,x=1",
        "steps=999999,prompts=999,samples=999", "steps=1,prompts=100001,samples=1",
        "steps=1,prompts=1,samples=" + "9" * 5000,
    ],
)  # fmt: skip
def test_what_is_no_plan_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(HarnessError, match="steps=200,prompts=16,samples=16"):
        parse_training(text)


def test_a_step_of_very_many_trials_is_estimated_too(make: Any) -> None:
    found = estimate(records_of(make, 8), Training(steps=2, prompts=5_000, samples=10), 550)
    assert found is not None
    assert found.hours.value == pytest.approx(2 * 91 * 10 / 3600)
