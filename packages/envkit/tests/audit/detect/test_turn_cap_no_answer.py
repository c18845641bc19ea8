# SPDX-License-Identifier: Apache-2.0
from envkit.audit.types import Owner

NAME = "turn-cap-no-answer"
WORK = ("list_files", {"path": "/"}, "a")
ANSWER = ("final_answer", {"answer": "42"}, "42")


def test_all_turns_and_nothing_handed_in(traces) -> None:
    traces.run("task_a", [WORK] * 4, cap=4)
    (found,) = traces.findings(NAME)
    assert (found.owner, found.step) == (Owner.MODEL, 8)
    assert found.evidence.startswith("4 turns of 4, no answer")


def test_a_refused_answer_is_none(traces) -> None:
    refused = ("final_answer", {"answer": "42"}, "ERROR: Cannot submit with incomplete todos.")
    traces.run("task_a", [WORK, refused], cap=2)
    assert len(traces.findings(NAME)) == 1


def test_turns_lost_to_the_environment_are_not_the_models(traces, fail) -> None:
    missing = ("exec", {"code": "python a"}, fail("sh: 1: python: not found", 127))
    for task in ("task_a", "task_b", "task_c"):
        traces.run(task, [missing] * 3, cap=3)
    found = traces.findings(NAME)
    assert {each.owner for each in found} == {Owner.ENVIRONMENT}
    assert "3 calls lost" in found[0].evidence


def test_near_miss_the_answer_came_on_the_last_turn(traces) -> None:
    traces.run("task_a", [WORK, WORK, ANSWER], cap=3)
    assert traces.findings(NAME) == []


def test_near_miss_the_last_word_is_the_answer(traces) -> None:
    traces.run("task_a", [WORK, WORK, "It is 42."], cap=3)
    assert traces.findings(NAME) == []


def test_near_miss_no_answer_but_turns_to_spare(traces) -> None:
    traces.run("task_a", [WORK, WORK], cap=3)
    assert traces.findings(NAME) == []


def test_near_miss_no_cap_on_record_is_not_judged(traces) -> None:
    traces.run("task_a", [WORK] * 50)
    assert traces.findings(NAME) == []
    assert traces.judged(NAME) == 0
