# SPDX-License-Identifier: Apache-2.0
"""One row a trial, for later runs."""

from dataclasses import replace
from typing import Any

from envkit.preflight.outcomes import load_of, outcomes
from envkit.preflight.report import could_not_run, counted
from envkit.preflight.types import Report
from envkit.trial.load import LoadShape


def report_of(make: Any, *attempts: Any, **changes: Any) -> Report:
    plan = make.plan(("fact",), 1)
    record = make.record(plan.specs[0], *attempts, **changes)
    return counted(replace(could_not_run(["x"]), plan=plan), plan, (record,))


def test_a_row_has_what_the_trial_took_over_all_attempts(make: Any) -> None:
    died = make.attempt(phases={"start": 9.0}, reward=None, faults=(make.fault(),))
    (row,) = outcomes(report_of(make, died, make.attempt(2, phases={"hold": 5.0, "act": 2.0})))
    assert (row.trial, row.task, row.concurrency, row.reward) == ("fact__000", "fact", 1, 1.0)
    assert (row.attempts, row.faulted) == (2, 1)
    assert (row.seconds, row.cpu_s, row.memory_mib) == (11.0, 1.5, 21.0)
    assert row.phases == {"act": 2.0}


def test_phases_of_an_attempt_that_was_cut_short_are_no_measurement(make: Any) -> None:
    died = make.attempt(phases={"start": 9.0}, reward=None, faults=(make.fault(),))
    (row,) = outcomes(report_of(make, died))
    assert (row.phases, row.reward, row.faulted) == ({}, None, 1)


def test_a_reward_that_is_not_valid_is_none(make: Any) -> None:
    (row,) = outcomes(report_of(make, make.attempt(reward_valid=False)))
    assert row.reward is None


def test_a_trial_that_was_never_begun_has_no_row(make: Any) -> None:
    assert outcomes(report_of(make, make.attempt(started_at=0.0))) == []


def test_the_load_is_what_changes_how_long_a_trial_takes(make: Any) -> None:
    plan = make.plan(("fact",), 1)
    assert load_of(plan) == {"think": "", "hold_s": 0.0}
    shaped = replace(plan.specs[0], load=LoadShape(think="2.5", hold_s=30.0, grade_twice=True))
    assert load_of(replace(plan, specs=(shaped,))) == {"think": "2.5", "hold_s": 30.0}
