# SPDX-License-Identifier: Apache-2.0
"""The score: what it counts as seen, as wrong, as lost, and what it will not read."""

import dataclasses
import io
import re
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from rich.console import Console

from envkit.deadline import DeadlineExceeded
from envkit.fault import (
    EndlessCommand,
    EnvkitError,
    Fault,
    HarnessError,
    Phase,
    SandboxDied,
    VerifierCrashed,
    classify,
)
from envkit.preflight.chaos import log
from envkit.preflight.chaos.choose import Chosen, Strike, write_chosen
from envkit.preflight.chaos.row import Row
from envkit.preflight.chaos.score import score
from envkit.preflight.chaos.score_json import to_json
from envkit.preflight.chaos.score_text import print_score
from envkit.trial.record import Attempt, TrialRecord, decided_by, write_record

KILLED = Strike(trial="t__000", kind="kill-box", phase="call")
DIED = SandboxDied("the agent's box is gone")


def fault(error: EnvkitError, phase: Phase = Phase.ACT) -> Fault:
    return classify(error, phase)


def attempt(
    number: int, *faults: Fault, reward: float | None = 1.0, valid: bool | None = None
) -> Attempt:
    sound = reward is not None and all(each.policy.reward_valid for each in faults)
    return Attempt(
        number=number,
        started_at=0.0,
        reward=reward,
        reward_valid=sound if valid is None else valid,
        faults=faults,
    )


class Run:
    """A report directory of a chaos run, made of what its parts say."""

    def __init__(self, directory: Path, *strikes: Strike) -> None:
        self.directory = directory
        self.plan = directory / "chaos" / "plan.json"
        chosen = Chosen(run="token", seed=0, hang_s=5.0, strikes=strikes)
        write_chosen(self.plan, chosen)
        (directory / "trials").mkdir()
        self.report(leaks=0)

    def report(self, *, leaks: int, token: str = "token") -> None:
        data = {"run_token": token, "leaks": {"processes": leaks, "mounts": 0}}
        (self.directory / "report.json").write_bytes(orjson.dumps(data))

    def struck(self, strike: Strike, *, took: bool = True) -> None:
        log.write(self.plan.with_name(log.LOG_NAME), strike, "process 7 is gone", took=took)

    def trial(self, name: str, *attempts: Attempt) -> None:
        last = attempts[-1]
        place = self.directory / "trials" / name
        place.mkdir()
        write_record(
            TrialRecord(
                trial_id=name,
                task=name.split("__")[0],
                sample=0,
                agent="replay",
                attempts=attempts,
                verdict="graded" if last.reward is not None else "no_verdict",
                reward=last.reward,
                reward_valid=last.reward_valid,
                fault=decided_by(last.faults),
                trial_dir=place,
                seconds=1.0,
            )
        )

    def row(self) -> Row:
        return score(self.directory).rows[0]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = Run(tmp_path, KILLED)
    made.struck(KILLED)
    return made


def test_all_as_the_table_says_is_a_pass(run: Run) -> None:
    run.trial("t__000", attempt(1, fault(DIED), reward=None), attempt(2))
    run.trial("t__001", attempt(1))
    found = score(run.directory)
    assert found.ok
    assert found.rows[0].right
    assert (found.untouched, found.disturbed, found.leaks) == (1, (), 0)
    assert found.matrix() == {("SandboxDied", "SandboxDied"): 1}


@pytest.mark.parametrize(
    ("attempts", "wrong"),
    [
        ((attempt(1),), {"detected", "class_right", "retried_right", "called_valid"}),
        ((attempt(1, fault(DIED), valid=True), attempt(2)), {"validity_right", "called_valid"}),
        ((attempt(1, fault(DIED)),), {"retried_right", "lost"}),
        ((attempt(1, fault(DIED)), attempt(2, fault(DIED))), {"lost"}),
        ((attempt(1, fault(DIED)), attempt(2, reward=0.5)), {"lost"}),
        ((attempt(1, fault(DIED)), attempt(2, reward=None)), {"lost"}),
        ((attempt(1, fault(DeadlineExceeded("exec", 1))), attempt(2)), {"class_right"}),
        (
            (attempt(1, fault(DeadlineExceeded("mcp_call", 1))), attempt(2)),
            {"class_right", "owner_right"},
        ),
        ((attempt(1, fault(EndlessCommand("it"))),), {"owner_right", "called_valid"}),
    ],
)
def test_what_is_not_as_the_table_says_is_counted_as_what_it_is(
    run: Run, attempts: tuple[Attempt, ...], wrong: set[str]
) -> None:
    run.trial("t__000", *attempts)
    row = run.row()
    assert not row.right
    assert not score(run.directory).ok
    bad = {"lost", "called_valid", "called_invalid"}
    for fact in wrong:
        assert getattr(row, fact) is (fact in bad), fact


STOPPED = Strike(trial="t__000", kind="hang", phase="stop")
LATE = fault(DeadlineExceeded("stop", 1), Phase.STOP)


@pytest.mark.parametrize(
    ("made", "facts"),
    [
        (attempt(1, LATE), {"right": True}),
        (attempt(1, LATE, valid=False), {"called_invalid": True, "lost": True}),
        (attempt(1, LATE, reward=0.5), {"validity_right": False, "lost": True}),
        (attempt(1), {"detected": False, "right": False, "lost": False}),
    ],
)
def test_a_teardown_must_cost_no_reward(
    tmp_path: Path, made: Attempt, facts: dict[str, bool]
) -> None:
    run = Run(tmp_path, STOPPED)
    run.struck(STOPPED)
    run.trial("t__000", made)
    row = run.row()
    assert {fact: getattr(row, fact) for fact in facts} == facts


def test_what_the_model_did_must_stay_valid_whatever_it_earned(tmp_path: Path) -> None:
    strike = Strike(trial="t__000", kind="model-endless", phase="call")
    run = Run(tmp_path, strike)
    run.struck(strike)
    run.trial("t__000", attempt(1, fault(EndlessCommand("it did not end")), reward=0.0))
    assert run.row().right
    assert (len(score(tmp_path).controls), len(score(tmp_path).faults)) == (1, 0)


def test_a_reward_where_nobody_can_have_graded_is_wrong(tmp_path: Path) -> None:
    strike = Strike(trial="t__000", kind="hang", phase="verify")
    run = Run(tmp_path, strike)
    run.struck(strike)
    late = fault(DeadlineExceeded("verify", 1), Phase.GRADE)
    run.trial("t__000", attempt(1, late, reward=0.0))
    row = run.row()
    assert (row.class_right, row.validity_right) == (True, False)


def test_a_strike_that_never_took_effect_fails_the_score(tmp_path: Path) -> None:
    run = Run(tmp_path, KILLED)
    run.trial("t__000", attempt(1))
    assert (run.row().took, run.row().called_valid) == (False, False)
    run.struck(KILLED, took=False)
    assert not run.row().took
    assert score(tmp_path).matrix() == {}


def test_a_strike_that_took_twice_fails_the_score(run: Run) -> None:
    run.struck(KILLED)
    run.trial("t__000", attempt(1, fault(DIED), reward=None), attempt(2))
    assert not run.row().took


def test_a_strike_that_no_plan_asked_for_fails_the_score(run: Run) -> None:
    run.trial("t__000", attempt(1, fault(DIED), reward=None), attempt(2))
    run.trial("t__001", attempt(1))
    run.struck(dataclasses.replace(KILLED, trial="t__001"))
    found = score(run.directory)
    assert (found.unplanned, found.ok) == (1, False)


def test_a_struck_trial_without_a_record_is_seen_by_nobody(run: Run) -> None:
    row = run.row()
    assert (row.code, row.class_right, row.lost) == ("no record", False, True)


@pytest.mark.parametrize(
    "other",
    [
        (attempt(1, LATE),),
        (attempt(1, reward=0.5),),
        (attempt(1, reward=None),),
        (attempt(1, fault(VerifierCrashed("it"), Phase.GRADE), reward=None), attempt(2)),
    ],
)
def test_a_trial_beside_the_struck_ones_must_be_as_ever(
    run: Run, other: tuple[Attempt, ...]
) -> None:
    run.trial("t__000", attempt(1, fault(DIED), reward=None), attempt(2))
    run.trial("t__001", *other)
    found = score(run.directory)
    assert found.disturbed == ("t__001",)
    assert not found.ok


def test_what_is_left_behind_fails_the_score(run: Run) -> None:
    run.trial("t__000", attempt(1, fault(DIED), reward=None), attempt(2))
    run.report(leaks=2)
    assert (score(run.directory).leaks, score(run.directory).ok) == (2, False)


def _without_report(run: Run) -> None:
    (run.directory / "report.json").unlink()


def _of_another_run(run: Run) -> None:
    run.report(leaks=0, token="other")


def _torn_log(run: Run) -> None:
    run.plan.with_name(log.LOG_NAME).write_text('{"trial": ')


def _no_plan(run: Run) -> None:
    run.plan.unlink()


@pytest.mark.parametrize("spoil", [_without_report, _of_another_run, _torn_log, _no_plan])
def test_what_cannot_be_scored_is_refused_in_one_line(
    run: Run, spoil: Callable[[Run], None]
) -> None:
    spoil(run)
    with pytest.raises(HarnessError) as refused:
        score(run.directory)
    assert str(run.directory) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_printed_score_names_each_row_that_is_wrong(run: Run) -> None:
    run.trial("t__000", attempt(1))
    paper = io.StringIO()
    print_score(score(run.directory), Console(width=200, file=paper))
    said = paper.getvalue()
    assert re.search(r"^planned +1 +0 *$", said, re.MULTILINE)
    assert re.search(r"^detected, or rightly not +0 +0 *$", said, re.MULTILINE)
    assert re.search(r"^SandboxDied +none +1 +wrong *$", said, re.MULTILINE)
    assert "t__000 kill-box in call: sandbox SandboxDied run again, reward invalid" in said
    assert said.rstrip().endswith("FAIL")


def test_the_document_holds_every_row_and_the_matrix(run: Run) -> None:
    run.trial("t__000", attempt(1, fault(DIED), reward=None), attempt(2))
    data = orjson.loads(orjson.dumps(to_json(score(run.directory))))
    assert (data["schema"], data["ok"]) == ("envkit.chaos-score/1", True)
    assert (data["faults"]["planned"], data["faults"]["class_right"]) == (1, 1)
    assert data["controls"]["planned"] == 0
    assert data["matrix"] == [{"expected": "SandboxDied", "seen": "SandboxDied", "count": 1}]
    assert data["rows"][0]["effect"] == "process 7 is gone"
