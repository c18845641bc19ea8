# SPDX-License-Identifier: Apache-2.0
import pytest

from envkit.audit.read import read
from envkit.audit.types import Channel, Run, Unreadable

USER = {"step_id": 1, "source": "user", "message": "q"}


def agent(*calls, results=(), **more):
    step = {"source": "agent", "message": "", "tool_calls": list(calls), **more}
    return {**step, "observation": {"results": list(results)}} if results else step


def call(key: str, name: str = "exec") -> dict[str, object]:
    return {"tool_call_id": key, "function_name": name, "arguments": {"command": "ls"}}


def trajectory(*steps) -> dict[str, object]:
    numbered = [{"step_id": n + 1, **step} for n, step in enumerate(steps)]
    return {
        "schema_version": "ATIF-v1.8",
        "agent": {"name": "a", "version": "1"},
        "steps": numbered,
    }


def read_one(traces, document) -> Run:
    traces.write(traces.root / "trajectory.json", document)
    (run,) = read(traces.root)
    assert isinstance(run, Run)
    return run


def test_calls_meet_their_observations_by_id(traces) -> None:
    results = [
        {"source_call_id": "b", "content": "second"},
        {"source_call_id": "a", "content": [{"type": "text", "text": "first"}]},
    ]
    run = read_one(
        traces, trajectory(USER, agent(call("a"), call("b"), call("c"), results=results))
    )
    assert [(c.text, c.step, c.answered) for c in run.calls] == [
        ("first", 1, True),
        ("second", 1, True),
        ("", 1, False),
    ]
    assert (run.form, run.turns, run.answered) == ("atif", 1, False)


@pytest.mark.parametrize(
    ("extra", "channel"),
    [
        ({"is_error": True}, Channel.FLAG),
        ({"tool_result_is_error": True}, Channel.FLAG),
        ({"ok": False, "code": "timeout"}, Channel.SUCCESS),
        ({"exit_code": 3}, Channel.EXIT),
        ({"is_error": False, "confidence": 0.1}, None),
        ({"error": "the producer's own notes"}, None),
    ],
)
def test_flags_that_converters_keep_in_extra_are_evidence(traces, extra, channel) -> None:
    results = [{"source_call_id": "a", "content": "words", "extra": extra}]
    (found,) = read_one(traces, trajectory(USER, agent(call("a"), results=results))).calls
    assert (found.failure and found.failure.channel) == channel
    assert found.text == "words"


def test_context_copied_from_before_is_not_counted_again(traces) -> None:
    copied = agent(call("a"), is_copied_context=True)
    run = read_one(traces, trajectory(USER, copied, agent(call("b"))))
    assert len(run.calls) == 1


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([], "steps is not a list with entries"),
        (["x"], "steps[0] is not an object with a source"),
        ([USER, agent({"tool_call_id": "a"})], "steps[1].tool_calls[0] has no function_name"),
    ],
)
def test_a_wrong_shape_is_named_by_its_place(traces, steps, reason) -> None:
    document = {"schema_version": "ATIF-v1.0", "steps": steps}
    traces.write(traces.root / "a.json", document)
    (found,) = read(traces.root)
    assert isinstance(found, Unreadable)
    assert reason in found.reason
