# SPDX-License-Identifier: Apache-2.0
"""``envkit lint``: every static problem of every task, one line each."""

from __future__ import annotations

from pathlib import Path

import orjson
from rich.console import Console
from rich.text import Text

from envkit.fault import TaskError
from envkit.preflight.text import count, one_line
from envkit.task import Problem, Severity, find_tasks
from envkit.task import lint as lint_task

SCHEMA = "envkit.lint/1"


def lint(directory: Path, *, as_json: bool) -> int:
    """Prints the problems; 1 where one of them is an error.

    Raises:
        TaskError: there is no such directory, or no task in it; with ``as_json`` printed as well.
    """
    try:
        found = {path: lint_task(path) for path in find_tasks(directory)}
    except TaskError as error:
        if as_json:
            print(orjson.dumps({"schema": SCHEMA, "error": one_line(error, 1000)}).decode())
        raise
    problems = [problem for listed in found.values() for problem in listed]
    errors = sum(problem.severity == Severity.ERROR for problem in problems)
    if as_json:
        print(orjson.dumps(_json(found, errors), option=orjson.OPT_INDENT_2).decode())
    else:
        _print(found, errors, len(problems) - errors)
    return 1 if errors else 0


def _print(found: dict[Path, list[Problem]], errors: int, warnings: int) -> None:
    console = Console()
    for path, problems in found.items():
        for problem in problems:
            colour = "red" if problem.severity == Severity.ERROR else "yellow"
            what = f"{path / problem.where}: {problem.message}; {problem.fix} [{problem.code}]"
            line = Text.assemble((problem.severity.value, colour), f" {one_line(what, 1000)}")
            console.print(line, soft_wrap=True)
    console.print(
        f"{count(len(found), 'task')}: {count(errors, 'error')}, {count(warnings, 'warning')}",
        highlight=False,
    )


def _json(found: dict[Path, list[Problem]], errors: int) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "tasks": len(found),
        "errors": errors,
        "problems": [
            {
                "task": str(path),
                "code": problem.code,
                "severity": str(problem.severity),
                "where": problem.where,
                "message": problem.message,
                "fix": problem.fix,
            }
            for path, problems in found.items()
            for problem in problems
        ],
    }
