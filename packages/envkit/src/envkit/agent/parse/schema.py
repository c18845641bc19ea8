# SPDX-License-Identifier: Apache-2.0
"""What a JSON Schema allows.

Looked at are ``type``, ``enum``, ``const``, ``anyOf``, ``oneOf``, ``allOf``, ``$ref`` within the
schema, ``properties``, ``required``, ``items`` and ``additionalProperties: false``. The rest is for
the tool to judge. A schema that says nothing allows everything, and so does one that is none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

MOST_REFS: Final = 16

type Schema = Mapping[str, Any]


class Wrong(Exception):
    """A value that a schema does not allow."""


def allowed(schema: Any, root: Schema) -> set[str]:
    """Kinds of values that a schema allows by name; empty where it names none."""
    kinds: set[str] = set()
    for each in _branches(schema, root):
        found = types_of(each) or {kind(value) for value in values_of(each)}
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


def kinds_of(value: Any) -> set[str]:
    """All names: a whole number is a number too, and 5.0 is whole."""
    one = kind(value)
    whole = one == "integer" or (one == "number" and float(value).is_integer())
    return {"integer", "number"} if whole else {one}


def types_of(schema: Schema) -> set[str]:
    """Its ``type``, be it one or several."""
    found = schema.get("type")
    several = [found] if isinstance(found, str) else listed(schema, "type")
    return {each for each in several if isinstance(each, str)}


def values_of(schema: Schema) -> list[Any]:
    """Its ``enum`` or ``const``."""
    return [schema["const"]] if "const" in schema else listed(schema, "enum")


def resolved(schema: Any, root: Schema) -> Schema:
    """The schema that a reference stands for; one that is none says nothing."""
    for _ in range(MOST_REFS):
        if not isinstance(schema, Mapping):
            return {}
        ref = cast("Schema", schema).get("$ref")
        if not isinstance(ref, str):
            return cast("Schema", schema)
        schema = _at(root, ref)
    return {}


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


def either(kinds: set[str]) -> str:
    """Kinds, as a message names them."""
    return " or ".join(sorted(kinds))


def short(value: Any) -> str:
    """A value, as a message shows it."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 120 else f"{text[:120]}…"


def _branches(schema: Any, root: Schema) -> Iterator[Schema]:
    """The schema, or what it chooses from."""
    schema = resolved(schema, root)
    if "type" in schema or "enum" in schema or "const" in schema:
        yield schema
        return
    options = [each for word in ("anyOf", "oneOf", "allOf") for each in listed(schema, word)]
    yield from (resolved(each, root) for each in options or [{}])


def _at(root: Schema, ref: str) -> Any:
    here: Any = root
    for step in ref.removeprefix("#").strip("/").split("/"):
        here = cast("Schema", here).get(step) if isinstance(here, Mapping) else None
    return here
