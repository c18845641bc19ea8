# SPDX-License-Identifier: Apache-2.0
"""From directories to tasks.

`load_task` refuses what a trial could not run with; everything else that is wrong is `lint`'s
to say. Errors are `TaskError`, one line: what, where, what to do.
"""

from collections.abc import Iterator
from pathlib import Path

from envkit.fault import TaskError
from envkit.task.digest import tree_digest
from envkit.task.files import CALLS, INSTRUCTION, SOLVE_SCRIPT, check_instruction, check_tests
from envkit.task.read import Flawed, Table, read_toml, unreadable
from envkit.task.settings import (
    agent_timeout_s,
    check_steps,
    check_timeouts,
    verifier_timeout_s,
)
from envkit.task.tree import escapes
from envkit.task.types import Problem, Task, World
from envkit.task.world import load_world, task_world


def load_task(dir: Path) -> Task:
    """The task in `dir`; raises `TaskError` where a trial could not run with it."""
    directory = dir.resolve()
    try:
        return _load(directory)
    except Flawed as flaw:
        raise TaskError(_line(directory, flaw.problem)) from flaw
    except OSError as cause:
        raise TaskError(_line(directory, unreadable(cause, directory))) from cause


def _load(directory: Path) -> Task:
    config = read_toml(directory / "task.toml")
    for problem in _blockers(directory, config):
        raise Flawed(problem)
    world = task_world(directory, config)
    calls = directory / CALLS
    return Task(
        name=directory.name,
        dir=directory,
        digest=tree_digest(directory, [world.digest] if world else []),
        instruction=(directory / INSTRUCTION).read_text(encoding="utf-8"),
        world=world,
        agent_timeout_s=agent_timeout_s(config),
        verifier_timeout_s=verifier_timeout_s(config),
        calls_path=calls if calls.is_file() else None,
        has_oracle=(directory / SOLVE_SCRIPT).is_file(),
    )


def _blockers(directory: Path, config: Table) -> Iterator[Problem]:
    yield from escapes(directory)
    yield from check_steps(config)
    yield from check_instruction(directory)
    yield from check_tests(directory)
    yield from check_timeouts(config)


def _line(directory: Path, problem: Problem) -> str:
    return f"{directory / problem.where}: {problem.message}; {problem.fix}"


def find_tasks(path: Path) -> list[Path]:
    """The task directories at `path`: itself, or its children in order of their names.

    A child that has an instruction but no task.toml counts: it is a broken task, to be reported
    and not skipped. Raises `TaskError` where there is none, or it cannot be listed.
    """
    try:
        return _find(path)
    except OSError as cause:
        raise TaskError(_line(path, unreadable(cause, path))) from cause


def _find(path: Path) -> list[Path]:
    if not path.is_dir():
        raise TaskError(f"{path}: no such directory; name a task or a directory of tasks")
    if _looks_like_task(path):
        return [path]
    children = [child for child in sorted(path.iterdir()) if child.is_dir()]
    found = [child for child in children if child.name != "worlds" and _looks_like_task(child)]
    if not found:
        raise TaskError(f"{path}: no task in it; a task is a directory with a task.toml")
    return found


def _looks_like_task(path: Path) -> bool:
    return (path / "task.toml").is_file() or (path / INSTRUCTION).is_file()


def load_world_dir(dir: Path) -> World:
    """The world in `dir`, for tools that need no task; raises `TaskError`."""
    try:
        return load_world(dir)
    except Flawed as flaw:
        raise TaskError(_line(dir, flaw.problem)) from flaw
    except OSError as cause:
        raise TaskError(_line(dir, unreadable(cause, dir))) from cause
