# SPDX-License-Identifier: Apache-2.0
from envkit.audit.types import Owner

NAME = "polluted-zero"
ANSWER = ("final_answer", {"answer": "?"}, "?")
REFUSED = {"error": "Required: file_path, tab_index"}
EDIT = {"action": "edit"}


def three_tasks_with_a_bad_schema(traces, say, *after, reward: float = 0.0) -> None:
    for task in ("task_a", "task_b", "task_c"):
        steps = [("sheets", EDIT, say(REFUSED)), *after, ANSWER]
        traces.run(task, steps, reward=reward)


def test_a_zero_after_a_fault_the_agent_never_got_past(traces, say) -> None:
    three_tasks_with_a_bad_schema(traces, say)
    found = traces.findings(NAME)
    assert len(found) == 3
    assert (found[0].owner, found[0].step, found[0].tool) == (Owner.HARNESS, 2, "sheets")
    report = traces.audit()
    assert (len(report.rewards.recorded), len(report.rewards.valid)) == (3, 0)


def test_a_zero_that_the_record_calls_invalid(fixtures) -> None:
    from envkit.audit import examine

    report = examine(fixtures / "harbor")
    found = {f.run.rsplit("/", 1)[1]: f.owner for f in report.findings if f.detector == NAME}
    assert found == {
        "rent__ours": Owner.ENVIRONMENT,
        "rent__steps": Owner.VERIFIER,
        "rent__timeout": Owner.ENVIRONMENT,
    }


def test_near_miss_the_agent_recovered(traces, say) -> None:
    three_tasks_with_a_bad_schema(traces, say, ("sheets", EDIT, say("done")))
    assert traces.findings(NAME) == []


def test_near_miss_a_business_rule(traces, say) -> None:
    for task in ("task_a", "task_b", "task_c"):
        steps = [("book", EDIT, say({"error": "not enough seats"})), ANSWER]
        traces.run(task, steps, reward=0.0)
    assert traces.findings(NAME) == []


def test_near_miss_the_models_own_slip(traces, say) -> None:
    steps = [("sheets", {"n": n}, say("ok")) for n in range(9)]
    traces.run("task_a", [*steps, ("sheets", EDIT, say(REFUSED)), ANSWER], reward=0.0)
    assert traces.findings(NAME) == []


def test_near_miss_a_reward_above_zero_in_spite_of_the_fault(traces, say) -> None:
    three_tasks_with_a_bad_schema(traces, say, reward=0.5)
    assert traces.findings(NAME) == []
    assert len(traces.audit().rewards.valid) == 3


def test_near_miss_no_reward_is_no_zero(traces, say) -> None:
    for task in ("task_a", "task_b", "task_c"):
        traces.run(task, [("sheets", EDIT, say(REFUSED))], graded=False)
    assert traces.findings(NAME) == []
    assert traces.judged(NAME) == 0
