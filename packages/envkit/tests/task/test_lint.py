# SPDX-License-Identifier: Apache-2.0
import json
import os
import shutil
from pathlib import Path

import pytest

from envkit.task import Severity, find_tasks, lint

TASKS = Path(__file__).parents[4] / "tasks"


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """A sound task beside its world, to be broken."""
    shutil.copytree(TASKS / "rail-margin", tmp_path / "rail-margin")
    shutil.copytree(TASKS / "worlds", tmp_path / "worlds")
    return tmp_path / "rail-margin"


def edit(task: Path, old: str, new: str) -> None:
    path = task / "task.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def found(task: Path) -> list[tuple[str, str]]:
    return [(problem.code, problem.where) for problem in lint(task)]


@pytest.mark.parametrize("ours", find_tasks(TASKS), ids=lambda path: path.name)
def test_our_own_tasks_are_sound(ours: Path) -> None:
    assert lint(ours) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            "timeout_sec = 600",
            "timeout_secs = 600",
            ("unknown-key", "task.toml:[agent].timeout_secs"),
        ),
        (
            "timeout_sec = 600",
            "timeout_secs = 600",
            ("timeout-missing", "task.toml:[agent].timeout_sec"),
        ),
        ("[agent]", "[agents]", ("unknown-key", "task.toml:agents")),
        ("cpus = 1", "cpu = 1", ("unknown-key", "task.toml:[verifier.environment].cpu")),
        ('name = "world"', 'nam = "w"', ("unknown-key", "task.toml:[environment.mcp_servers].nam")),
        (
            "timeout_sec = 600",
            "timeout_sec = 0",
            ("timeout-absurd", "task.toml:[agent].timeout_sec"),
        ),
        (
            "timeout_sec = 600",
            'timeout_sec = "600"',
            ("timeout-absurd", "task.toml:[agent].timeout_sec"),
        ),
        (
            "timeout_sec = 600",
            "timeout_sec = nan",
            ("timeout-absurd", "task.toml:[agent].timeout_sec"),
        ),
        (
            "timeout_sec = 120",
            "timeout_sec = 1e9",
            ("timeout-absurd", "task.toml:[verifier].timeout_sec"),
        ),
        (
            "build_timeout_sec = 600",
            "build_timeout_sec = -1",
            ("timeout-absurd", "task.toml:[environment].build_timeout_sec"),
        ),
        (
            '"separate"',
            '"shared"',
            ("verifier-shared", "task.toml:[verifier].environment_mode"),
        ),
        ("artifacts = [", "source = [", ("artifacts-missing", "task.toml:artifacts")),
        ('"/logs/artifacts"', '"/logs/../etc"', ("artifact-path", "task.toml:artifacts")),
        ('"/logs/artifacts"', '{source = "etc"}', ("artifact-path", "task.toml:artifacts")),
        (
            'network_mode = "no-network"\nbuild',
            'network_mode = "public"\nbuild',
            ("network-open", "task.toml:[environment].network_mode"),
        ),
        (
            'network_mode = "no-network"\ncpus',
            "cpus",
            ("network-open", "task.toml:[verifier.environment].network_mode"),
        ),
        (
            'network_mode = "no-network"',
            'network_mode = "none"',
            ("network-mode", "task.toml:[verifier.environment].network_mode"),
        ),
        (
            "memory_mb = 1024",
            'memory = "1G"',
            ("deprecated-key", "task.toml:[verifier.environment].memory"),
        ),
        (
            "cpus = 1",
            'cpus = "two"',
            ("resource-absurd", "task.toml:[verifier.environment].cpus"),
        ),
        (
            "storage_mb = 1024\n\n[[",
            "storage_mb = 0\n\n[[",
            ("resource-absurd", "task.toml:[environment].storage_mb"),
        ),
        (
            "[[environment.mcp_servers]]",
            "[[metadata.old_servers]]",
            ("tools-undeclared", "task.toml:[[environment.mcp_servers]]"),
        ),
        ("schema_version", "version", ("deprecated-key", "task.toml:version")),
        (
            'world = "brackwater-freight"',
            'world = "gone"',
            ("world-missing", "task.toml:[metadata].world"),
        ),
        (
            "[metadata]",
            '[[steps]]\nname = "a"\n[metadata]',
            ("steps-unsupported", "task.toml:steps"),
        ),
    ],
)
def test_a_wrong_setting_is_named(task: Path, old: str, new: str, problem: tuple[str, str]) -> None:
    edit(task, old, new)
    assert problem in found(task)


def test_a_scalar_where_a_table_belongs_is_named(task: Path) -> None:
    text = (task / "task.toml").read_text()
    (task / "task.toml").write_text("solution = 5\n" + text)
    assert found(task) == [("not-a-table", "task.toml:solution")]


def test_a_shared_verifier_is_the_default_and_is_named(task: Path) -> None:
    text = (task / "task.toml").read_text()
    for line in ('environment_mode = "separate"\n', "[verifier.environment]\n"):
        text = text.replace(line, "")
    text = text.replace('network_mode = "no-network"\ncpus = 1\nmemory_mb = 1024\n', "", 1)
    (task / "task.toml").write_text(text.replace("storage_mb = 1024\n", "", 1))
    assert ("verifier-shared", "task.toml:[verifier].environment_mode") in found(task)


def test_metadata_is_free(task: Path) -> None:
    edit(task, "[metadata]", "[metadata]\nanything = {a = [1, {b = 2}]}")
    assert lint(task) == []


def test_a_misspelt_key_is_answered_with_the_right_one(task: Path) -> None:
    edit(task, "timeout_sec = 600", "timeout_secs = 600")
    fixes = {problem.code: problem.fix for problem in lint(task)}
    assert fixes["unknown-key"] == "did you mean timeout_sec?"


@pytest.mark.parametrize(
    ("name", "code", "severity"),
    [
        ("task.toml", "toml-missing", Severity.ERROR),
        ("instruction.md", "instruction-missing", Severity.ERROR),
        ("tests/test.sh", "tests-missing", Severity.ERROR),
        ("solution/solve.sh", "oracle-missing", Severity.WARNING),
        ("solution/calls.jsonl", "calls-missing", Severity.WARNING),
    ],
)
def test_a_missing_file_is_named(task: Path, name: str, code: str, severity: Severity) -> None:
    (task / name).unlink()
    problems = [problem for problem in lint(task) if problem.code == code]
    assert [(problem.where, problem.severity) for problem in problems] == [(name, severity)]


def test_a_missing_tests_folder_and_environment_are_named(task: Path) -> None:
    shutil.rmtree(task / "tests")
    shutil.rmtree(task / "environment")
    assert [code for code, _ in found(task)] == ["tests-missing", "environment-missing"]


def test_a_missing_directory_is_one_problem(tmp_path: Path) -> None:
    assert [problem.code for problem in lint(tmp_path / "none")] == ["task-missing"]


def test_an_empty_directory_tells_all_that_is_missing(tmp_path: Path) -> None:
    codes = [problem.code for problem in lint(tmp_path)]
    assert codes[:3] == ["toml-missing", "instruction-missing", "tests-missing"]


def test_broken_toml_says_line_and_column_and_hides_no_missing_file(task: Path) -> None:
    edit(task, "[agent]", "[agent")
    (task / "instruction.md").unlink()
    problems = {problem.code: problem for problem in lint(task)}
    assert "line 12, column 7" in problems["toml-broken"].message
    assert "instruction-missing" in problems


def test_toml_that_is_not_text_is_named(task: Path) -> None:
    (task / "task.toml").write_bytes(b"\xff\xfe\x00")
    assert ("toml-unreadable", "task.toml") in found(task)


def test_scripts_that_would_not_run_are_named(task: Path) -> None:
    (task / "tests/test.sh").write_bytes(b"#!/bin/sh\r\nexit 0\r\n")
    (task / "solution/solve.sh").write_text("exit 0\n")
    (task / "solution/solve.sh").chmod(0o644)
    assert found(task) == [
        ("script-crlf", "tests/test.sh"),
        ("script-no-interpreter", "solution/solve.sh"),
        ("script-not-executable", "solution/solve.sh"),
    ]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "Expecting"),
        ("[]", "an object is expected"),
        ('{"tool": "pdf_server_read_pdf_pages"}', "arguments is no object"),
        ('{"arguments": {}}', "no tool named"),
        ('{"tool": "mail_server_send", "arguments": {}}', "belongs to no server"),
        ('{"tool": "pdf_server_x", "arguments": {}, "sleep": 1}', "unknown keys: sleep"),
        ('{"tool": "pdf_server_x", "arguments": {}, "expect_error": 1}', "expect_error"),
        ('{"final_answer": 5}', "final_answer takes one text"),
        ('{"final_answer": "early"}', "before the last line"),
    ],
)
def test_a_call_that_cannot_be_replayed_is_named(task: Path, line: str, says: str) -> None:
    calls = task / "solution/calls.jsonl"
    calls.write_text(f"{line}\n{calls.read_text()}")
    problems = lint(task)
    assert {(found.code, found.where) for found in problems} == {
        ("calls-invalid", "solution/calls.jsonl:1")
    }
    assert says in " ".join(found.message for found in problems)


def test_an_empty_recording_is_named(task: Path) -> None:
    (task / "solution/calls.jsonl").write_text("\n\n")
    assert found(task) == [("calls-invalid", "solution/calls.jsonl")]


@pytest.mark.parametrize("where", ["tests/leak", "environment/leak", "solution/sub/leak"])
def test_a_link_that_leaves_the_task_is_named(task: Path, where: str) -> None:
    (task / where).parent.mkdir(exist_ok=True)
    (task / where).symlink_to(task.parent / "worlds")
    assert ("path-escapes", where) in found(task)


def test_a_link_within_the_task_is_fine_and_a_dangling_one_is_named(task: Path) -> None:
    (task / "solution/same.py").symlink_to("solve.py")
    assert lint(task) == []
    (task / "solution/gone.py").symlink_to("nothing.py")
    assert found(task) == [("path-dangling", "solution/gone.py")]


def test_a_pipe_is_named_and_not_waited_for(task: Path) -> None:
    os.mkfifo(task / "tests/pipe")
    assert found(task) == [("path-special", "tests/pipe")]


@pytest.mark.parametrize(
    ("content", "code"), [(b" \n", "instruction-empty"), (b"\xff", "instruction-unreadable")]
)
def test_an_instruction_that_tells_nothing_is_named(task: Path, content: bytes, code: str) -> None:
    (task / "instruction.md").write_bytes(content)
    assert found(task) == [(code, "instruction.md")]


def test_every_problem_is_one_line_and_none_is_told_twice(task: Path) -> None:
    edit(task, "[agent]", "[agents]")
    edit(task, "cpus = 1", 'cpu = 1\nbroken = "a"')
    (task / "solution/calls.jsonl").write_text(json.dumps({"tool": 5}))
    problems = lint(task)
    assert len(problems) == len(set(problems)) > 4
    assert all("\n" not in str(problem) and problem.fix for problem in problems)
