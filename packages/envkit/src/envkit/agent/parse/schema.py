# SPDX-License-Identifier: Apache-2.0
"""Values by JSON Schema: those said as text are given a type, those said as JSON are checked.

Looked at are ``type``, ``enum``, ``const``, ``anyOf``, ``oneOf``, ``allOf``, ``$ref`` within the
schema, ``properties``, ``required``, ``items`` and ``additionalProperties: false``. The rest is for
the tool to judge. A schema that says nothing allows everything.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from envkit.agent.parse.reader import NotJson, Reader

MOST_CHECKS: Final = 10_000
"""Of one argument; what is larger is for the tool to judge."""
MOST_REFS: Final = 16

type Schema = Mapping[str, Any]

PYTHON_WORDS: Final = {"True": True, "False": False, "None": None}
"""As templates write them that print values rather than JSON."""


class Wrong(Exception):
    """A value that a schema does not allow."""


def from_text(text: str, schema: Any, root: Schema) -> Any:
    """The value that ``text`` says.

    Where only strings are allowed it is the text as it is. Where something else is allowed too,
    text that says something else is that. Without a schema, objects and lists are read, the rest
    is text.

    Raises:
        Wrong: it says nothing that is allowed.
    """
    kinds = allowed(schema, root)
    if kinds == {"string"}:
        return _of_enum(text, schema, root)
    value = _said(text)
    if not kinds:
        return cast("Any", value) if isinstance(value, dict | list) else text
    if kinds & _kinds(value) and not isinstance(value, str):
        return value
    if "string" in kinds:
        return text
    raise Wrong(f"must be {_either(kinds)}, not {_short(text)}")


def listed(schema: Schema, word: str) -> list[Any]:
    """What stands under ``word``, if it is a list."""
    found = schema.get(word)
    return cast("list[Any]", found) if isinstance(found, list) else []


def required(schema: Schema) -> list[str]:
    """Names of what must be there."""
    return [each for each in listed(schema, "required") if isinstance(each, str)]


def named(schema: Schema, word: str) -> Schema:
    """What stands under ``word``, if it is an object."""
    found = schema.get(word)
    return cast("Schema", found) if isinstance(found, Mapping) else {}


def check(value: Any, schema: Any, root: Schema) -> None:
    """Raises Wrong where ``schema`` does not allow ``value``."""
    problem = _Checker(root).problem(value, schema, "")
    if problem:
        raise Wrong(problem)


def allowed(schema: Any, root: Schema) -> set[str]:
    """Kinds of values that a schema allows by name; empty where it names none."""
    kinds: set[str] = set()
    for each in _branches(schema, root):
        found = _types(each) or {kind(value) for value in _values(each)}
        if not found:
            return set()
        kinds |= found
    return kinds


def kind(value: Any) -> str:
    """Name of what a value is, as JSON Schema has it."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _kinds(value: Any) -> set[str]:
    """All names: a whole number is a number too, and 5.0 is whole."""
    one = kind(value)
    whole = one == "integer" or (one == "number" and float(value).is_integer())
    return {"integer", "number"} if whole else {one}


def _branches(schema: Any, root: Schema) -> Iterator[Schema]:
    """The schema, or what it chooses from."""
    schema = _resolved(schema, root)
    if "type" in schema or "enum" in schema or "const" in schema:
        yield schema
        return
    options = [each for word in ("anyOf", "oneOf", "allOf") for each in listed(schema, word)]
    yield from (_resolved(each, root) for each in options or [{}])


def _types(schema: Schema) -> set[str]:
    """Its ``type``, be it one or several."""
    found = schema.get("type")
    several = [found] if isinstance(found, str) else listed(schema, "type")
    return {each for each in several if isinstance(each, str)}


def _values(schema: Schema) -> list[Any]:
    """Its ``enum`` or ``const``."""
    return [schema["const"]] if "const" in schema else listed(schema, "enum")


def _resolved(schema: Any, root: Schema) -> Schema:
    for _ in range(MOST_REFS):
        if not isinstance(schema, Mapping):
            return {}
        ref = cast("Schema", schema).get("$ref")
        if not isinstance(ref, str):
            return cast("Schema", schema)
        schema = _at(root, ref)
    return {}


def _at(root: Schema, ref: str) -> Any:
    here: Any = root
    for step in ref.removeprefix("#").strip("/").split("/"):
        here = cast("Schema", here).get(step) if isinstance(here, Mapping) else None
    return here


def _of_enum(text: str, schema: Any, root: Schema) -> str:
    """``text``, or what an enumeration has for it but for the white space around it."""
    values = _values(_resolved(schema, root))
    return text.strip() if text not in values and text.strip() in values else text


def _said(text: str) -> Any:
    """What ``text`` says as JSON or as a word of Python; itself where it says nothing."""
    word = text.strip()
    if word in PYTHON_WORDS:
        return PYTHON_WORDS[word]
    reader = Reader(word)
    try:
        value, end = reader.json(0)
    except NotJson:
        return text
    return value if end == len(word) else text


class _Checker:
    def __init__(self, root: Schema) -> None:
        self._root = root
        self._left = MOST_CHECKS

    def problem(self, value: Any, schema: Any, where: str) -> str:
        """What is wrong; empty where nothing is."""
        self._left -= 1
        schema = _resolved(schema, self._root)
        if self._left < 0 or not schema:
            return ""
        return (
            self._listed(value, schema, where)
            or self._kind(value, schema, where)
            or self._choice(value, schema, where)
            or self._within(value, schema, where)
        )

    def _listed(self, value: Any, schema: Schema, where: str) -> str:
        values = _values(schema)
        if not values or any(_same(value, each) for each in values):
            return ""
        return f"{where}must be one of {_short(values)}, not {_short(value)}"

    def _kind(self, value: Any, schema: Schema, where: str) -> str:
        kinds = _types(schema)
        if not kinds or kinds & _kinds(value):
            return ""
        return f"{where}must be {_either(kinds)}, not {kind(value)} {_short(value)}"

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
                return f"{where}has no {_short(unknown[0])}"
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


def _either(kinds: set[str]) -> str:
    return " or ".join(sorted(kinds))


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:120]}…"
