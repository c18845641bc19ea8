# SPDX-License-Identifier: Apache-2.0
"""Static checks of a task directory: everything that can be known wrong without running it.

Needs neither Harbor nor a sandbox. Each problem has a stable code and one line that says what,
where and what to do; one problem never hides another, except that a task.toml which cannot be
read leaves only its own problem and those of the files.
"""

from collections.abc import Iterator
from pathlib import Path

from envkit.task.calls import check_calls
from envkit.task.files import CALLS, check_files, check_scripts
from envkit.task.keys import TASK_KEYS
from envkit.task.keys_check import unknown_keys
from envkit.task.read import Flawed, Table, error, read_toml, unreadable
from envkit.task.settings import (
    check_artifacts,
    check_network,
    check_resources,
    check_steps,
    check_timeouts,
    check_tools,
    check_verifier,
)
from envkit.task.tree import escapes
from envkit.task.types import Problem, World
from envkit.task.world import task_world


def lint(dir: Path) -> list[Problem]:
    """Every problem of the task in `dir`, errors first; empty for a sound task."""
    found: list[Problem] = []
    try:
        found.extend(_problems(dir))
    except OSError as cause:
        found.append(unreadable(cause, dir))
    return list(dict.fromkeys(sorted(found, key=lambda problem: problem.severity.value)))


def _problems(task_dir: Path) -> Iterator[Problem]:
    if not task_dir.is_dir():
        yield error("task-missing", str(task_dir), "no such directory", "correct the path")
        return
    links = escapes(task_dir)
    yield from links
    config: Table = {}
    try:
        config = read_toml(task_dir / "task.toml")
    except Flawed as flaw:
        yield flaw.problem
    else:
        yield from _check_config(config)
    yield from check_files(task_dir, config)
    if not links:
        yield from check_scripts(task_dir)
        yield from _check_play(task_dir, config)


def _check_config(config: Table) -> Iterator[Problem]:
    yield from unknown_keys(config, TASK_KEYS, "task.toml")
    yield from check_steps(config)
    yield from check_timeouts(config)
    yield from check_verifier(config)
    yield from check_network(config)
    yield from check_resources(config)
    yield from check_tools(config)
    yield from check_artifacts(config)


def _check_play(task_dir: Path, config: Table) -> Iterator[Problem]:
    world: World | None = None
    try:
        world = task_world(task_dir, config)
    except Flawed as flaw:
        yield flaw.problem
    if (task_dir / CALLS).is_file():
        yield from check_calls(task_dir / CALLS, world)
