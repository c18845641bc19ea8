# SPDX-License-Identifier: Apache-2.0
"""Rewards that mean nothing although no box failed breach the gate, by name."""

from dataclasses import replace
from typing import Any

import pytest

from envkit.fault import KilledOwnBox, NotIsolated, Phase, SandboxDied, VerifierCrashed, classify
from envkit.preflight.failed import failed_trial, is_failed
from envkit.preflight.soundness import checks, held, unsound
from envkit.trial.load import LoadShape
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
    plan = make.plan(("fact",), 3)
    dead = make.attempt(reward=None, unsearched=1, faults=(make.fault(SandboxDied("gone")),))
    own = make.attempt(reward=0.0, unsearched=1, faults=(make.fault(KilledOwnBox("kill -9 -1")),))
    records = [
        make.record(plan.specs[0], make.attempt(unsearched=1)),
        make.record(plan.specs[1], dead),
        make.record(plan.specs[2], own),
    ]
    (line,) = lines(records)
    assert "1 trial could not be searched" in line
    assert "fact__000" in line


def test_many_trials_are_counted_and_a_few_named(make: Any) -> None:
    plan = make.plan(("fact",), 9)
    (line,) = lines([make.record(spec, make.attempt(unsearched=2)) for spec in plan.specs])
    assert "9 trials" in line
    assert line.endswith("fact__004 and 4 more")


def test_a_pass_says_what_was_looked_at(make: Any) -> None:
    plan = make.plan(("fact",), 2)
    attempt = make.attempt(grades=(grade(1.0), grade(1.0)), searched=3)
    records = [make.record(spec, attempt) for spec in plan.specs]
    assert list(held(records)) == [
        "2 trials graded twice, with the same rewards",
        "boxes searched 6 times, no mark of another trial in one",
    ]
    assert list(held([make.record(plan.specs[0])])) == []


def test_a_trial_graded_differently_is_shown_and_run_again_the_same_way(make: Any) -> None:
    plan = make.plan(("fact",), 1, agent="my.agents:Mine")
    load = LoadShape(think="recorded*0.5", hold_s=2.5, grade_twice=True)
    spec = replace(plan.specs[0], load=load, agent_args={"turns": 3, "model": "a b"})
    record = make.record(spec, make.attempt(grades=(grade(1.0), grade(0.0))))
    assert is_failed(plan, record)
    failed = failed_trial(replace(plan, specs=(spec,)), record)
    assert failed.why == "the same files, graded again, did not earn the same"
    assert failed.reproduce.endswith(
        "--think-time 'recorded*0.5' --hold 2.5 --grade-twice "
        "--agent-arg turns=3 --agent-arg 'model=\"a b\"'"
    )


def test_the_figures_name_the_trials(make: Any) -> None:
    plan = make.plan(("fact",), 3)
    seen = classify(NotIsolated("another trial's mark"), Phase.COLLECT)
    records = [
        make.record(plan.specs[0], make.attempt(grades=(grade(1.0), grade(0.0)), searched=3)),
        make.record(plan.specs[1], make.attempt(grades=(grade(1.0), BROKEN), unsearched=1)),
        make.record(plan.specs[2], make.attempt(faults=(seen,), searched=2)),
    ]
    assert checks(records) == {
        "graded_twice": 2,
        "graded_differently": ["fact__000"],
        "graded_once_only": ["fact__001"],
        "boxes_searched": 5,
        "searches_failed": 1,
        "saw_another_trial": ["fact__002"],
    }
