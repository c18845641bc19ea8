# SPDX-License-Identifier: Apache-2.0
"""Keys that nobody reads, found by walking a TOML table beside the table of known keys."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import cast

from envkit.task.keys import DEPRECATED, MIXED_LISTS, Keys
from envkit.task.read import Table, error, warning
from envkit.task.types import Problem


def unknown_keys(config: Table, known: Keys, file: str) -> list[Problem]:
    """One problem for each key that is unknown, deprecated, or holds no table where one belongs."""
    return list(_walk(config, known, file, ()))


def _walk(config: Table, known: Keys, file: str, path: tuple[str, ...]) -> Iterator[Problem]:
    for key, value in config.items():
        replacement = DEPRECATED.get((path[-1] if path else "", key))
        if replacement is not None:
            yield _deprecated(_where(file, path, key), key, replacement)
        elif key not in known:
            yield _unknown(_where(file, path, key), key, known)
        elif (inner := known[key]) is not None:
            yield from _descend(value, inner, file, (*path, key))


def _descend(value: object, known: Keys, file: str, path: tuple[str, ...]) -> Iterator[Problem]:
    entries = cast(list[object], value) if isinstance(value, list) else [value]
    for entry in entries:
        if isinstance(entry, dict):
            yield from _walk(cast(Table, entry), known, file, path)
        elif not (path[-1] in MIXED_LISTS and isinstance(entry, str)):
            where = _where(file, path[:-1], path[-1])
            message = f"a table is expected, found {type(entry).__name__}"
            yield error("not-a-table", where, message, f"write it as [{'.'.join(path)}]")


def _where(file: str, path: tuple[str, ...], key: str) -> str:
    return f"{file}:[{'.'.join(path)}].{key}" if path else f"{file}:{key}"


def _unknown(where: str, key: str, known: Keys) -> Problem:
    close = get_close_matches(key, known, n=1)
    fix = f"did you mean {close[0]}?" if close else f"remove it; known here: {', '.join(known)}"
    return error("unknown-key", where, "no such key, so it would be ignored", fix)


def _deprecated(where: str, key: str, replacement: str) -> Problem:
    return warning("deprecated-key", where, f"{key} is deprecated", f"write {replacement}")
