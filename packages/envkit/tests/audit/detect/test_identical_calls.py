# SPDX-License-Identifier: Apache-2.0
from envkit.audit.types import Owner, Severity

NAME = "identical-calls"
LIST = ("list_files", {"path": "/"}, "a\nb")


def test_three_in_a_row_with_the_same_result(traces) -> None:
    traces.run("task_a", [LIST, LIST, LIST, ("list_files", {"path": "/x"}, "c")])
    (found,) = traces.findings(NAME)
    assert (found.count, found.step, found.owner) == (3, 2, Owner.MODEL)
    assert "in a row" in found.evidence


def test_copies_in_one_message_need_no_equal_result(traces) -> None:
    traces.run("task_a", [[("roll", {}, str(n)) for n in range(5)]])
    (found,) = traces.findings(NAME)
    assert (found.count, found.evidence) == (5, "5 copies in one message: {}")


def test_a_planning_tool_weighs_less(traces) -> None:
    traces.run("task_a", [("todo_write", {"todos": []}, '{"success": true}')] * 4)
    (found,) = traces.findings(NAME)
    assert found.severity is Severity.INFO


def test_near_miss_two_in_a_row(traces) -> None:
    traces.run("task_a", [LIST, LIST, ("list_files", {"path": "/x"}, "c"), LIST])
    assert traces.findings(NAME) == []


def test_near_miss_polling_with_changing_results(traces) -> None:
    traces.run("task_a", [("job_status", {"id": 1}, f"{n} %") for n in range(6)])
    assert traces.findings(NAME) == []


def test_near_miss_paging_with_changing_arguments(traces) -> None:
    traces.run("task_a", [("read", {"page": n}, "same") for n in range(6)])
    assert traces.findings(NAME) == []


def test_near_miss_the_same_arguments_to_different_tools(traces) -> None:
    traces.run("task_a", [(name, {}, "") for name in ("a", "b", "a", "b", "a")])
    assert traces.findings(NAME) == []


def test_a_series_that_a_bad_schema_refused_is_the_harness_own(traces, say) -> None:
    refused = ("sheets", {"action": "edit"}, say({"error": "Required: file_path, tab_index"}))
    for task in ("task_a", "task_b", "task_c"):
        traces.run(task, [refused] * 3)
    assert {found.owner for found in traces.findings(NAME)} == {Owner.HARNESS}
