# SPDX-License-Identifier: Apache-2.0
"""TOML files as plain tables, with every way to fail as one `Problem`.

`Flawed` travels inside this package only: `lint` collects its problem, `load_task` turns it
into a `TaskError`.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from envkit.task.types import Problem, Severity

type Table = Mapping[str, object]


class Flawed(Exception):
    """A task or world that cannot be read any further."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def error(code: str, where: str, message: str, fix: str) -> Problem:
    """A problem that stops the task from running or from being trusted."""
    return Problem(code=code, severity=Severity.ERROR, where=where, message=message, fix=fix)


def warning(code: str, where: str, message: str, fix: str) -> Problem:
    """A problem worth a look that stops nothing."""
    return Problem(code=code, severity=Severity.WARNING, where=where, message=message, fix=fix)


def read_toml(path: Path) -> Table:
    """The file's top table; `Flawed` says the line and column of broken TOML."""
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as cause:
        fix = f"add {path.name}"
        raise Flawed(error("toml-missing", path.name, "no such file", fix)) from cause
    except UnicodeDecodeError as cause:
        fix = "save it as UTF-8"
        raise Flawed(error("toml-unreadable", path.name, one_line(cause), fix)) from cause
    except OSError as cause:
        raise Flawed(unreadable(cause, path.parent, "toml-unreadable")) from cause
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as cause:
        fix = "correct the TOML there"
        raise Flawed(error("toml-broken", path.name, one_line(cause), fix)) from cause


def unreadable(cause: OSError, root: Path, code: str = "unreadable") -> Problem:
    """What the system said about a file below `root`, and what to do: rights are no encoding."""
    path = Path(os.fsdecode(cause.filename or root))
    where = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
    denied = isinstance(cause, PermissionError)
    fix = "give this user the right to read it" if denied else "make it readable"
    return error(code, where, cause.strerror or one_line(cause), fix)


def one_line(cause: BaseException) -> str:
    """The exception's text without line breaks, or its class where it has none."""
    return " ".join(str(cause).split()) or type(cause).__name__


def table(parent: Table, key: str) -> Table:
    """The table under `key`, empty where it is absent or no table."""
    value = parent.get(key)
    return cast(Table, value) if isinstance(value, dict) else {}


def tables(parent: Table, key: str) -> list[Table]:
    """The tables of the array under `key`; other entries are left out."""
    value = parent.get(key)
    entries = cast(list[object], value) if isinstance(value, list) else []
    return [cast(Table, entry) for entry in entries if isinstance(entry, dict)]


def strings(parent: Table, key: str) -> tuple[str, ...] | None:
    """The list of strings under `key` (empty where absent), or None where it is something else."""
    value = parent.get(key, [])
    if not isinstance(value, list):
        return None
    entries = cast(list[object], value)
    texts = tuple(entry for entry in entries if isinstance(entry, str))
    return texts if len(texts) == len(entries) else None
