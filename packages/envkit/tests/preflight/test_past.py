# SPDX-License-Identifier: Apache-2.0
"""What ended is taken over, what was under way is moved aside, and nothing passes for another."""

from typing import Any

import pytest

from envkit.preflight.journal import Journal
from envkit.preflight.past import CUT_OFF, Past, take_up
from envkit.preflight.types import Plan, TrialSpec
from envkit.trial.record import RECORD_NAME, write_attempt, write_record, write_taken


@pytest.fixture
def plan(make: Any) -> Plan:
    plan = make.plan(("fact",), 3)
    plan.out_dir.mkdir()
    return plan


def taken(plan: Plan) -> Past:
    return take_up(plan.out_dir.parent, plan.out_dir, plan)


def begin(plan: Plan) -> None:
    Journal(plan.out_dir.parent).close()


def names(plan: Plan) -> list[str]:
    return sorted(path.name for path in plan.out_dir.iterdir())


def ended(make: Any, spec: TrialSpec, *attempts: Any) -> None:
    place = spec.out_dir / (
        spec.trial_id if len(attempts) < 2 else f"{spec.trial_id}.attempt{len(attempts)}"
    )
    place.mkdir()
    write_record(make.record(spec, *attempts, trial_dir=place))


def test_a_trial_with_a_record_ended_and_its_directory_stays(make: Any, plan: Plan) -> None:
    first, second, third = plan.specs
    ended(make, first)
    (second.out_dir / second.trial_id).mkdir()
    begin(plan)
    past = taken(plan)
    assert set(past.records) == {first.trial_id}
    assert past.remaining(plan) == (second, third)
    assert (past.resumed, past.cut_off) == (1, 1)
    assert names(plan) == [first.trial_id]
    assert (plan.out_dir.parent / CUT_OFF / "1" / second.trial_id).is_dir()


def test_an_attempt_that_ended_is_not_repeated_though_its_trial_did_not_end(
    make: Any, plan: Plan
) -> None:
    spec = plan.specs[0]
    failed = make.attempt(reward=None, faults=(make.fault(),))
    write_taken(spec.out_dir / spec.trial_id, failed)
    (spec.out_dir / f"{spec.trial_id}.attempt2").mkdir()
    begin(plan)
    past = taken(plan)
    assert past.earlier[spec.trial_id] == (failed,)
    assert past.cut_off == 1
    assert names(plan) == [spec.trial_id]


def test_what_an_attempt_wrote_of_its_own_end_is_not_taken_for_it(make: Any, plan: Plan) -> None:
    spec = plan.specs[0]
    write_attempt(spec.out_dir / spec.trial_id, make.attempt(reward=None, faults=(make.fault(),)))
    begin(plan)
    past = taken(plan)
    assert past.earlier[spec.trial_id] == ()
    assert past.cut_off == 1
    assert names(plan) == []


def test_all_attempts_of_a_trial_that_ended_stay(make: Any, plan: Plan) -> None:
    spec = plan.specs[0]
    failed = make.attempt(reward=None, faults=(make.fault(),))
    write_taken(spec.out_dir / spec.trial_id, failed)
    ended(make, spec, failed, make.attempt(2))
    begin(plan)
    past = taken(plan)
    assert len(past.records[spec.trial_id].attempts) == 2
    assert past.cut_off == 0
    assert names(plan) == [spec.trial_id, f"{spec.trial_id}.attempt2"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "envkit.trial/0"}', "null"])
def test_a_record_that_cannot_be_read_is_none(make: Any, plan: Plan, text: str) -> None:
    spec = plan.specs[0]
    ended(make, spec)
    (spec.out_dir / spec.trial_id / RECORD_NAME).write_text(text)
    begin(plan)
    past = taken(plan)
    assert past.records == {}
    assert past.cut_off == 1


def test_a_record_of_another_trial_in_its_place_is_none(make: Any, plan: Plan) -> None:
    first, second, _ = plan.specs
    ended(make, first)
    (first.out_dir / first.trial_id).rename(first.out_dir / second.trial_id)
    begin(plan)
    assert taken(plan).records == {}


def test_a_run_that_was_moved_finds_its_trials_where_they_are_now(make: Any, plan: Plan) -> None:
    spec = plan.specs[0]
    (spec.out_dir / spec.trial_id).mkdir()
    write_record(make.record(spec, trial_dir=spec.out_dir / spec.trial_id))
    begin(plan)
    assert taken(plan).records[spec.trial_id].trial_dir == spec.out_dir / spec.trial_id


def test_temporary_files_go_and_other_things_are_moved_aside_uncounted(plan: Plan) -> None:
    (plan.out_dir / ".tmp").mkdir()
    (plan.out_dir / ".tmp" / "litter").write_text("")
    (plan.out_dir / "sandbox.log").write_text("complaints")
    begin(plan)
    past = taken(plan)
    assert past.cut_off == 0
    assert names(plan) == []
    aside = plan.out_dir.parent / CUT_OFF / "1"
    assert [path.name for path in aside.iterdir()] == ["sandbox.log"]


def test_what_was_cut_off_is_counted_over_all_kills_and_once(plan: Plan) -> None:
    first, second, _ = plan.specs
    cut_off = 0
    for trials in ((first, second), (first,), ()):
        for spec in trials:
            (plan.out_dir / spec.trial_id).mkdir()
        Journal(plan.out_dir.parent, cut_off=cut_off).close()
        cut_off = taken(plan).cut_off
    assert cut_off == 3


def test_each_kill_has_a_place_of_its_own_for_what_it_cut_off(plan: Plan) -> None:
    trial = plan.specs[0].trial_id
    for kill in (1, 2):
        (plan.out_dir / trial).mkdir()
        begin(plan)
        assert taken(plan).resumed == kill
    assert sorted(p.name for p in (plan.out_dir.parent / CUT_OFF).iterdir()) == ["1", "2"]
