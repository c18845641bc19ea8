# SPDX-License-Identifier: Apache-2.0
import pytest

from envkit.audit.read import read
from envkit.audit.types import Ignored, Run, Unreadable


def only_run(traces) -> Run:
    (run,) = [item for item in read(traces.root) if isinstance(item, Run)]
    return run


def test_calls_meet_their_results_by_id_whatever_the_order(traces, say) -> None:
    parallel = [("a", {"n": 1}, say("one")), ("b", {}, say("two"))]
    directory = traces.run("task_a", [parallel, ("a", {"n": 2}, say("three"))])
    run = only_run(traces)
    assert [(c.tool, c.text, c.message, c.step) for c in run.calls] == [
        ("a", "one", 1, 2),
        ("b", "two", 1, 3),
        ("a", "three", 4, 5),
    ]
    assert (run.id, run.task, run.file) == (
        "batch/task_a",
        "task_a",
        "batch/task_a/trajectory.json",
    )
    assert directory.name == run.task


def test_reused_ids_are_paired_in_order(traces) -> None:
    call = {"id": "same", "function": {"name": "f", "arguments": "{}"}}
    said = [{"role": "user", "content": "q"}]
    for answer in ("first", "second"):
        said.append({"role": "assistant", "content": "", "tool_calls": [call]})
        said.append({"role": "tool", "tool_call_id": "same", "content": answer})
    traces.write(traces.root / "trajectory.json", said)
    assert [call.text for call in only_run(traces).calls] == ["first", "second"]


def test_a_call_without_a_result_cites_itself(traces) -> None:
    call = {"id": "x", "function": {"name": "f", "arguments": "{}"}}
    said = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    traces.write(traces.root / "a.json", {"messages": said})
    (found,) = only_run(traces).calls
    assert (found.answered, found.step) == (False, 0)


def test_the_form_before_tool_calls_is_read(traces) -> None:
    said = [
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": '{"error": "no"}'},
    ]
    traces.write(traces.root / "a.json", {"messages": said})
    assert only_run(traces).calls[0].failure is not None


def test_arguments_that_are_no_json_stay_text(traces) -> None:
    traces.run("task_a", [("f", "{not json", "ok")])
    (call,) = only_run(traces).calls
    assert (call.arguments, call.parsed, call.operation) == ("{not json", "{not json", "")


def test_the_operation_of_a_many_in_one_tool_is_known(traces) -> None:
    traces.run("task_a", [("s", {"request": {"action": "edit"}}, ""), ("s", {"op": "read"}, "")])
    assert [call.operation for call in only_run(traces).calls] == ["edit", "read"]


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"messages": []}, "messages is not a list with entries"),
        ({"messages": {"role": "user"}}, "messages is not a list with entries"),
        ({"messages": ["hello"]}, "messages[0] is not an object with a role"),
        ({"messages": [{"role": "user"}, {"content": "x"}]}, "messages[1] is not an object"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"id": "a"}]}]},
            "messages[0].tool_calls[0] has no function name",
        ),
        ({"steps": []}, "neither OpenAI messages nor ATIF"),
        ("text", "neither OpenAI messages nor ATIF"),
    ],
)
def test_a_wrong_shape_is_named_by_its_place(traces, document, reason) -> None:
    traces.write(traces.root / "task_a" / "trajectory.json", document)
    (found,) = read(traces.root)
    assert isinstance(found, Unreadable)
    assert reason in found.reason


def test_json_that_claims_no_form_is_ignored(traces) -> None:
    traces.write(traces.root / "prices.json", {"rent": 1200})
    assert list(read(traces.root)) == [Ignored()]


def test_a_judge_that_failed_makes_the_reward_invalid(traces) -> None:
    directory = traces.run("task_a", ["42"], reward=0.0)
    traces.write(
        directory / "grades.json",
        {"scoring_results": {"final_score": 0.0}, "verifier_results": [{"status": "error"}]},
    )
    verdict = only_run(traces).verdict
    assert verdict is not None
    assert (verdict.reward, verdict.valid) == (0.0, False)
