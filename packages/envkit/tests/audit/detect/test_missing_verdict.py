# SPDX-License-Identifier: Apache-2.0
import pytest

from envkit.audit.types import Owner

NAME = "missing-verdict"
WORK = ("list_files", {}, "a")
ANSWER = ("final_answer", {"answer": "42"}, "42")


def test_to_be_graded_and_not_graded(traces) -> None:
    traces.run("task_a", [WORK, ANSWER], graded=False)
    (found,) = traces.findings(NAME)
    assert found.owner is Owner.VERIFIER
    assert found.evidence == "batch/task_a/grades.json: is missing"


@pytest.mark.parametrize(
    ("grades", "reason"),
    [
        ('{"scoring_results": {', "cut off or broken JSON"),
        ('{"grading_run_status": "failed"}', "no final score, grading is failed"),
        ('{"scoring_results": {"final_score": null}}', "no final score"),
        ('{"scoring_results": {"final_score": NaN}}', "no final score"),
    ],
)
def test_a_verdict_that_cannot_be_read_is_none(traces, grades, reason) -> None:
    directory = traces.run("task_a", [ANSWER], graded=False)
    (directory / "grades.json").write_text(grades, "utf-8")
    (found,) = traces.findings(NAME)
    assert reason in found.evidence
    assert traces.audit().rewards.recorded == ()


def test_three_ungraded_runs_without_an_answer_are_a_rule_of_the_harness(traces) -> None:
    for task in ("task_a", "task_b", "task_c"):
        traces.run(task, [WORK], graded=False)
    assert {found.owner for found in traces.findings(NAME)} == {Owner.HARNESS}


def test_one_such_run_does_not_tell(traces) -> None:
    traces.run("task_a", [WORK], graded=False)
    (found,) = traces.findings(NAME)
    assert found.owner is Owner.UNKNOWN


def test_near_miss_a_zero_is_a_verdict(traces) -> None:
    traces.run("task_a", [ANSWER], reward=0.0)
    assert traces.findings(NAME) == []


def test_near_miss_no_answer_but_graded(traces) -> None:
    traces.run("task_a", [WORK], reward=0.25)
    assert traces.findings(NAME) == []


def test_near_miss_nothing_says_that_it_was_to_be_graded(traces) -> None:
    traces.run("task_a", [ANSWER])
    assert traces.findings(NAME) == []
    assert traces.judged(NAME) == 0
