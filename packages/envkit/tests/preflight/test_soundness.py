# SPDX-License-Identifier: Apache-2.0
"""Rewards that mean nothing although no box failed breach the gate, by name."""

from typing import Any

import pytest

from envkit.fault import NotIsolated, Phase, SandboxDied, VerifierCrashed, classify
from envkit.preflight.soundness import unsound
from envkit.trial.record import Grade


def lines(records: Any) -> list[str]:
    return [line for line in unsound(records) if line]


def grade(reward: float, **rewards: float) -> Grade:
    return Grade(reward=reward, rewards={"reward": reward, **rewards})


BROKEN = Grade(reward=None, fault=classify(VerifierCrashed("killed"), Phase.GRADE))


@pytest.mark.parametrize(
    ("grades", "says"),
    [
        ((), None),
        ((grade(1.0), grade(1.0)), None),
        ((grade(1.0), grade(0.5)), "fact__000 (1, then 0.5)"),
        ((grade(1.0, cited=1.0), grade(1.0, cited=0.0)), "fact__000 (1, then 1)"),
        ((grade(1.0), BROKEN), "failed: fact__000 (VerifierCrashed)"),
    ],
)
def test_grades_must_agree_in_every_named_reward(make: Any, grades: Any, says: str | None) -> None:
    plan = make.plan(("fact",), 1)
    found = lines([make.record(plan.specs[0], make.attempt(grades=grades))])
    assert len(found) == (says is not None)
    assert all(says in line for line in found if says)


def test_what_another_trial_made_is_a_breach_though_the_attempt_was_run_again(make: Any) -> None:
    plan = make.plan(("fact",), 2)
    seen = classify(NotIsolated("another trial's mark is in this box: /tmp/x"), Phase.COLLECT)
    first = make.attempt(faults=(seen,), reward_valid=False)
    records = [make.record(plan.specs[0], first, make.attempt(2)), make.record(plan.specs[1])]
    (line,) = lines(records)
    assert line.startswith("1 trial saw what another trial made: fact__000; another trial's mark")


def test_a_box_that_could_not_be_searched_is_said_only_where_a_reward_stands_on_it(
    make: Any,
) -> None:
    plan = make.plan(("fact",), 2)
    dead = make.attempt(reward=None, unsearched=1, faults=(make.fault(SandboxDied("gone")),))
    records = [
        make.record(plan.specs[0], make.attempt(unsearched=1)),
        make.record(plan.specs[1], dead),
    ]
    (line,) = lines(records)
    assert "1 trial could not be searched" in line
    assert "fact__000" in line


def test_many_trials_are_counted_and_a_few_named(make: Any) -> None:
    plan = make.plan(("fact",), 9)
    (line,) = lines([make.record(spec, make.attempt(unsearched=2)) for spec in plan.specs])
    assert "9 trials" in line
    assert line.endswith("fact__004 and 4 more")
