# SPDX-License-Identifier: Apache-2.0
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.audit.envelope import DEPTH, read_result
from envkit.audit.types import Channel

SHELL_OUTPUT = "\nError output:\nsh: 1: python: not found\n\n\nCommand failed with exit code 127"


def block(value: object) -> list[dict[str, str]]:
    return [{"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}]


FAILED: list[tuple[str, str, object, Channel]] = [
    (
        "escaped success false",
        "code_exec",
        block({"success": False, "output": "x"}),
        Channel.SUCCESS,
    ),
    (
        "escaped error field",
        "sheets",
        block({"action": "a", "error": "Required: b"}),
        Channel.ERROR,
    ),
    ("error object", "sheets", {"error": {"code": 1, "message": "no"}}, Channel.ERROR),
    ("ok false", "pdf", {"ok": False, "did": "not_found: no such page."}, Channel.SUCCESS),
    ("flag", "pdf", {"isError": True, "content": block("boom")}, Channel.FLAG),
    ("other flag", "pdf", {"is_error": True, "content": "boom"}, Channel.FLAG),
    ("contradiction", "x", {"isError": False, "content": block({"error": "lost"})}, Channel.ERROR),
    (
        "structured",
        "x",
        {"content": block("done"), "structuredContent": {"ok": False}},
        Channel.SUCCESS,
    ),
    ("blocks as text", "x", json.dumps(block({"success": False})), Channel.SUCCESS),
    ("escaped twice", "x", block(json.dumps(block({"error": "deep"}))), Channel.ERROR),
    ("wrapper", "x", {"result": json.dumps({"error": "inner"})}, Channel.ERROR),
    ("exit code", "bash", {"output": "x", "exit_code": 1}, Channel.EXIT),
    ("status with message", "x", {"status": "error", "message": "no"}, Channel.STATUS),
    ("plain exit line", "bash", "no such thing\nexit code: 2", Channel.EXIT),
    ("returncode head", "bash", "<returncode>1</returncode>\n<output></output>", Channel.EXIT),
    ("harness message", "sheets", block("Internal error: Validation error: a: b"), Channel.MESSAGE),
    (
        "reader's harness message",
        "read_file",
        "Invalid params: Error calling tool 'x': no",
        Channel.MESSAGE,
    ),
    ("reader's one line", "read_file", "Error: ENOENT: no such file", Channel.MESSAGE),
    ("bracket", "list_files", block("[not found: /documents]\n"), Channel.MESSAGE),
    ("truncated JSON", "code_exec", block('{"success":false,"output":"abc'), Channel.MESSAGE),
]

PASSED: list[tuple[str, str, object]] = [
    ("nothing", "x", None),
    ("empty list", "x", []),
    ("empty text", "x", ""),
    ("null error", "sheets", block({"action": "a", "error": None, "read": {"text": "Error: 5"}})),
    ("a measured error", "fit", {"error": 0.03, "slope": 2}),
    ("error list of nothing", "x", {"error": []}),
    ("status of a record", "get_ticket", {"status": "error", "id": 7}),
    (
        "success with a traceback",
        "bash",
        block({"success": True, "output": "Traceback (most recent call last):\nno pandas"}),
    ),
    ("a document with the words", "pdf", block({"error": None, "text": "429 Too Many Requests"})),
    ("a JSON file that a reader returned", "read_text_file", '{"success": false, "error": "x"}'),
    ("a JSON file that a shell printed", "bash", '{"success": false, "error": "x"}'),
    ("half of one", "read_file", '{"success": false, "error'),
    ("a log that a reader returned", "read_file", "Error: disk\nError: again\nok"),
    ("a log that a shell printed", "bash", "Error: disk full"),
    ("a search without a match", "search_files", block("No files matching 'error' found in /")),
    ("a bracketed listing", "list_files", block("[not found: a] is a folder name")),
    ("prose about an exit code", "notes", "the exit code: 2"),
    ("zero", "bash", {"output": "", "exit_code": 0}),
    ("data with a nested error", "query", {"rows": [{"error": "typo"}], "n": 1}),
    ("a flag that says fine", "x", {"isError": False, "content": block("Error: is the title")}),
]


@pytest.mark.parametrize(
    ("tool", "content", "channel"), [row[1:] for row in FAILED], ids=[row[0] for row in FAILED]
)
def test_typed_evidence_of_failure_is_found(tool: str, content: object, channel: Channel) -> None:
    failure = read_result(content, tool=tool).failure
    assert failure is not None
    assert failure.channel is channel


@pytest.mark.parametrize(
    ("tool", "content"), [row[1:] for row in PASSED], ids=[row[0] for row in PASSED]
)
def test_words_alone_are_no_failure(tool: str, content: object) -> None:
    assert read_result(content, tool=tool).failure is None


def test_exit_code_and_cause_come_out_of_an_escaped_shell_result() -> None:
    failure = read_result(block({"success": False, "output": SHELL_OUTPUT}), tool="exec").failure
    assert failure is not None
    assert (failure.exit_code, failure.cause) == (127, "python: not found")


def test_an_echo_of_the_answer_is_no_error_message() -> None:
    answer = "ERROR: the ledger has none"
    outcome = read_result(answer, tool="final_answer", arguments={"answer": answer + " at all"})
    assert outcome.failure is None


def test_a_refused_answer_is_one() -> None:
    text = "ERROR: Cannot submit final_answer with incomplete todos."
    failure = read_result(text, tool="final_answer", arguments={"answer": "42"}).failure
    assert failure is not None


def test_a_flag_beside_the_result_decides_before_words() -> None:
    assert read_result("Error: title", tool="pdf", flags={"ok": True}).failure is None
    failure = read_result("anything", tool="pdf", flags={"tool_result_is_error": True}).failure
    assert failure is not None
    assert failure.text == "anything"


def test_a_command_that_failed_is_one_although_the_tool_worked() -> None:
    text = "sh: 1: jq: not found\n\nCommand failed with exit code 127"
    failure = read_result(text, tool="code_execution_server_code_exec", flags={"ok": True}).failure
    assert failure is not None
    assert (failure.channel, failure.cause) == (Channel.EXIT, "jq: not found")


def test_layers_beyond_the_limit_are_text() -> None:
    content: object = {"error": "bottom"}
    for _ in range(DEPTH + 1):
        content = block(content)
    assert read_result(content, tool="x").failure is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(json_values)
def test_any_value_is_read(value: Any) -> None:
    outcome = read_result(value, tool="x")
    assert isinstance(outcome.text, str)


@given(st.text(min_size=1, max_size=60), st.integers(0, 3))
def test_an_error_survives_any_wrapping(message: str, layers: int) -> None:
    content: object = {"error": message}
    for layer in range(layers):
        content = block(content) if layer % 2 else json.dumps(content)
    failure = read_result(content, tool="x").failure
    assert failure is not None
    assert failure.text.strip() == message.strip() or not message.strip()


@given(st.text(max_size=200))
def test_the_text_of_a_block_is_never_changed(text: str) -> None:
    assert read_result(block(text), tool="x").text == text
