# SPDX-License-Identifier: Apache-2.0
"""The files a task must have, and what is wrong with its scripts.

Harbor copies `solution/` and `tests/` into a box and executes the script there: Windows line
ends or a missing interpreter line fail only inside the trial, where they look like a zero.
"""

from collections.abc import Iterator
from pathlib import Path

from envkit.task.read import Table, error, table, warning
from envkit.task.types import Problem

INSTRUCTION = "instruction.md"
TEST_SCRIPT = "tests/test.sh"
SOLVE_SCRIPT = "solution/solve.sh"
CALLS = "solution/calls.jsonl"


def check_files(task_dir: Path, config: Table) -> Iterator[Problem]:
    """Errors for what a trial needs, warnings for what proves the task solvable."""
    yield from check_instruction(task_dir)
    yield from check_tests(task_dir)
    if not (task_dir / SOLVE_SCRIPT).is_file():
        fix = "add a script that earns the full reward"
        yield warning("oracle-missing", SOLVE_SCRIPT, "no such file: nothing proves it works", fix)
    if not (task_dir / CALLS).is_file():
        fix = 'record the oracle\'s calls, one {"tool": ..., "arguments": ...} a line'
        yield warning("calls-missing", CALLS, "no such file, so nothing to replay", fix)
    yield from _check_environment(task_dir, config)


def check_instruction(task_dir: Path) -> Iterator[Problem]:
    """An error where the agent would be told nothing."""
    path = task_dir / INSTRUCTION
    if not path.is_file():
        fix = "say there what the agent shall do and where its answer goes"
        yield error("instruction-missing", INSTRUCTION, "no such file", fix)
    elif not path.read_bytes().strip():
        yield error("instruction-empty", INSTRUCTION, "empty", "say what the agent shall do")
    elif not _is_text(path):
        yield error("instruction-unreadable", INSTRUCTION, "not UTF-8", "save it as UTF-8")


def _is_text(path: Path) -> bool:
    try:
        path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return False
    return True


def check_tests(task_dir: Path) -> Iterator[Problem]:
    """An error where nothing would grade the task."""
    if not (task_dir / TEST_SCRIPT).is_file():
        fix = "add a script that writes /logs/verifier/reward.json"
        yield error("tests-missing", TEST_SCRIPT, "no such file, so nothing grades the task", fix)


def _check_environment(task_dir: Path, config: Table) -> Iterator[Problem]:
    image = table(config, "environment").get("docker_image")
    if not image and not (task_dir / "environment").is_dir():
        fix = "add environment/Dockerfile or [environment].docker_image"
        yield error("environment-missing", "environment/", "no such directory", fix)


def check_scripts(task_dir: Path) -> Iterator[Problem]:
    """Problems of the scripts that Harbor executes."""
    for name in (TEST_SCRIPT, SOLVE_SCRIPT):
        path = task_dir / name
        if path.is_file():
            yield from _check_script(path, name)


def _check_script(path: Path, where: str) -> Iterator[Problem]:
    content = path.read_bytes()
    if b"\r\n" in content:
        fix = f"convert it: sed -i 's/\\r$//' {where}"
        yield error("script-crlf", where, "Windows line ends, which no Linux shell runs", fix)
    if not content.startswith(b"#!"):
        fix = "begin it with #!/bin/sh"
        yield warning("script-no-interpreter", where, "no #! line", fix)
    if not path.stat().st_mode & 0o100:
        yield warning("script-not-executable", where, "not executable", f"chmod +x {where}")
