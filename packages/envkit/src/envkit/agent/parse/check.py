# SPDX-License-Identifier: Apache-2.0
"""Values that were said as JSON, held against a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from envkit.agent.parse.schema import (
    Schema,
    Wrong,
    either,
    kind,
    kinds_of,
    listed,
    named,
    required,
    resolved,
    short,
    types_of,
    values_of,
)

MOST_CHECKS: Final = 10_000
"""Of one argument; what is larger is for the tool to judge."""


def check(value: Any, schema: Any, root: Schema) -> None:
    """Raises Wrong where ``schema`` does not allow ``value``."""
    try:
        problem = _Checker(root).problem(value, schema, "")
    except RecursionError:  # it chooses among itself: for the tool to judge, too
        return
    if problem:
        raise Wrong(problem)


class _Checker:
    def __init__(self, root: Schema) -> None:
        self._root = root
        self._left = MOST_CHECKS

    def problem(self, value: Any, schema: Any, where: str) -> str:
        """What is wrong; empty where nothing is."""
        self._left -= 1
        schema = resolved(schema, self._root)
        if self._left < 0 or not schema:
            return ""
        return (
            self._listed(value, schema, where)
            or self._kind(value, schema, where)
            or self._choice(value, schema, where)
            or self._within(value, schema, where)
        )

    def _listed(self, value: Any, schema: Schema, where: str) -> str:
        values = values_of(schema)
        if not values or any(_same(value, each) for each in values):
            return ""
        return f"{where}must be one of {short(values)}, not {short(value)}"

    def _kind(self, value: Any, schema: Schema, where: str) -> str:
        kinds = types_of(schema)
        if not kinds or kinds & kinds_of(value):
            return ""
        return f"{where}must be {either(kinds)}, not {kind(value)} {short(value)}"

    def _choice(self, value: Any, schema: Schema, where: str) -> str:
        for word in ("anyOf", "oneOf"):
            found = [self.problem(value, each, where) for each in listed(schema, word)]
            if found and all(found):
                return found[0] if len(found) == 1 else f"{where}must be {_options(found, where)}"
        both = (self.problem(value, each, where) for each in listed(schema, "allOf"))
        return next(filter(None, both), "")

    def _within(self, value: Any, schema: Schema, where: str) -> str:
        if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
            items = enumerate(cast("list[Any]", value))
            each = (self.problem(x, schema["items"], f"{where}[{i}] ") for i, x in items)
            return next(filter(None, each), "")
        if isinstance(value, dict):
            return self._members(cast("dict[str, Any]", value), schema, where)
        return ""

    def _members(self, value: dict[str, Any], schema: Schema, where: str) -> str:
        known = named(schema, "properties")
        missing = [each for each in required(schema) if each not in value]
        if missing:
            return f"{where}lacks {missing[0]!r}"
        if schema.get("additionalProperties") is False:
            unknown = [each for each in value if each not in known]
            if unknown:
                return f"{where}has no {short(unknown[0])}"
        inner = (self.problem(x, known.get(key), f"{where}.{key} ") for key, x in value.items())
        return next(filter(None, inner), "")


def _same(one: Any, other: Any) -> bool:
    """Equal as JSON, where true is not 1."""
    return one == other and (kind(one) == "boolean") == (kind(other) == "boolean")


def _options(problems: list[str], where: str) -> str:
    said = [
        each.removeprefix(where).removeprefix("must be ").split(", not ")[0] for each in problems
    ]
    return " or ".join(dict.fromkeys(said))
