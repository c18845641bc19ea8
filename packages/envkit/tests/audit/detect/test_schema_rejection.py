# SPDX-License-Identifier: Apache-2.0
import pytest

from envkit.audit.types import Owner

NAME = "schema-rejection"
UNION = "Internal error: Validation error: operations.0: Unable to extract tag using discriminator"
EDIT = {"request": {"action": "edit", "operations": [{}]}}
READ = {"request": {"action": "read", "path": "/a"}}

REJECTIONS = [
    UNION,
    {
        "action": "filter",
        "error": "Invalid: 2 validation errors for list[F]\n0.column\n  Field required",
    },
    {"error": "Required: file_path, tab_index"},
    {"error": "Missing required parameter: path"},
    {"error": {"code": -32602, "message": "MCP error -32602: Invalid arguments"}},
    {"success": False, "error": "'path' is a required property"},
    {"error": "read() got an unexpected keyword argument 'page'"},
    "Input validation error: 'x' is not of type 'integer'",
]

NEAR_MISSES = {
    "a business rule": {"error": "not enough seats on this flight"},
    "a missing file": {"error": "File not found: /a.xlsx"},
    "a document about validation": {"error": None, "text": "2 validation errors for Invoice"},
    "a rule that needs a sentence": {"error": "Required: the client's consent, in writing."},
    "a help text": {"error": None, "help": "Required: file_path, tab_index"},
    "a program that validated": {
        "success": False,
        "output": "\nError output:\n1 validation error for Row\n\nCommand failed with exit code 1",
    },
}


@pytest.mark.parametrize("result", REJECTIONS)
def test_a_validators_refusal_is_found_and_cited(traces, say, result) -> None:
    traces.run("task_a", [("sheets", READ, say("ok")), ("sheets", EDIT, say(result))])
    (found,) = traces.findings(NAME)
    assert (found.tool, found.step, found.recovered) == ("sheets", 4, False)
    assert found.file == "batch/task_a/trajectory.json"


@pytest.mark.parametrize("result", NEAR_MISSES.values(), ids=NEAR_MISSES)
def test_other_failures_and_other_words_are_not(traces, say, result) -> None:
    traces.run("task_a", [("sheets", EDIT, say(result))])
    assert traces.findings(NAME) == []
    assert traces.judged(NAME) == 1


def test_a_tool_that_refuses_often_in_three_tasks_has_a_bad_schema(traces, say) -> None:
    for task in ("task_a", "task_b", "task_c"):
        traces.run(task, [("sheets", EDIT, say(UNION))])
    assert {found.owner for found in traces.findings(NAME)} == {Owner.HARNESS}


def test_the_same_task_three_times_does_not_tell(traces, say) -> None:
    for batch in ("one", "two", "three"):
        traces.run("task_a", [("sheets", EDIT, say(UNION))], batch=batch)
    assert {found.owner for found in traces.findings(NAME)} == {Owner.UNKNOWN}


def test_a_tool_that_refuses_seldom_was_misused(traces, say) -> None:
    for task in ("task_a", "task_b", "task_c"):
        fine = [("sheets", READ, say("ok"))] * 4
        traces.run(task, [*fine, ("sheets", EDIT, say(UNION))])
    assert {found.owner for found in traces.findings(NAME)} == {Owner.MODEL}


def test_recovery_means_the_same_operation_worked_later(traces, say) -> None:
    steps = [("sheets", EDIT, say(UNION)), ("sheets", READ, say("ok"))]
    traces.run("task_a", steps)
    traces.run("task_b", [*steps, ("sheets", EDIT, say("done"))])
    assert [found.recovered for found in traces.findings(NAME)] == [False, True]
