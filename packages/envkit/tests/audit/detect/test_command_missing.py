# SPDX-License-Identifier: Apache-2.0
import pytest

from envkit.audit.types import Owner

NAME = "command-missing"
RUN = {"code": "python sum.py"}


@pytest.mark.parametrize(
    ("stderr", "code"),
    [
        ("sh: 1: python: not found", 127),
        ("bash: line 1: python: command not found", 127),
        ("/bin/sh: 1: python: not found\nlate warning", 127),
    ],
)
def test_a_program_the_shell_does_not_have(traces, fail, stderr, code) -> None:
    traces.run("task_a", [("exec", RUN, fail(stderr, code)), ("exec", RUN, "exit code: 0")])
    (found,) = traces.findings(NAME)
    assert (found.subject, found.step, found.fingerprint) == (
        "python",
        2,
        "python: not found" if "command" not in stderr else "python: command not found",
    )


def test_near_miss_a_probe_that_exits_zero(traces, say) -> None:
    output = "no pip\n\nStderr output:\nsh: 1: pip: not found"
    traces.run("task_a", [("exec", RUN, say({"success": True, "output": output}))])
    assert traces.findings(NAME) == []


def test_near_miss_a_document_that_quotes_a_shell(traces, say) -> None:
    traces.run("task_a", [("pdf", {}, say({"error": None, "text": "sh: 1: python: not found"}))])
    assert traces.findings(NAME) == []


def test_near_miss_code_that_the_shell_could_not_parse(traces, fail) -> None:
    stderr = "sh: 1: wacc: not found\nsh: 4: Syntax error: word unexpected"
    traces.run("task_a", [("exec", RUN, fail(stderr, 2))])
    assert traces.findings(NAME) == []


def test_near_miss_a_file_that_a_program_did_not_find(traces, fail) -> None:
    traces.run(
        "task_a", [("exec", RUN, fail("ls: cannot access 'x': No such file or directory", 2))]
    )
    assert traces.findings(NAME) == []


def test_near_miss_a_business_object_that_was_not_found(traces, say) -> None:
    traces.run("task_a", [("orders", {}, say({"error": "order 17: not found"}))])
    assert traces.findings(NAME) == []


@pytest.mark.parametrize(
    ("program", "tasks", "owner"),
    [
        ("python", 3, Owner.ENVIRONMENT),
        ("python", 2, Owner.UNKNOWN),
        ("DISCUSSION", 3, Owner.MODEL),
        ("pyhton", 1, Owner.MODEL),
    ],
)
def test_the_corpus_decides_whose_it_is(traces, fail, program, tasks, owner) -> None:
    for number in range(tasks):
        traces.run(f"task_{number}", [("exec", RUN, fail(f"sh: 1: {program}: not found", 127))])
    assert {found.owner for found in traces.findings(NAME)} == {owner}


def test_recovered_when_the_tool_worked_later(traces, fail, say) -> None:
    missing = ("exec", RUN, fail("sh: 1: python: not found", 127))
    traces.run("task_a", [missing, ("exec", {"code": "python3 x"}, say({"success": True}))])
    traces.run("task_b", [missing])
    assert [found.recovered for found in traces.findings(NAME)] == [True, False]
