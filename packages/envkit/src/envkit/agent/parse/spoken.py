# SPDX-License-Identifier: Apache-2.0
"""Values that were said as text, by the type that a schema allows."""

from __future__ import annotations

from typing import Any, Final, cast

from envkit.agent.parse.reader import NotJson, Reader
from envkit.agent.parse.schema import (
    Schema,
    Wrong,
    allowed,
    either,
    kinds_of,
    resolved,
    short,
    values_of,
)

PYTHON_WORDS: Final = {"True": True, "False": False, "None": None}
"""As templates write them that print values rather than JSON."""


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
    if kinds & kinds_of(value) and not isinstance(value, str):
        return value
    if "string" in kinds:
        return text
    raise Wrong(f"must be {either(kinds)}, not {short(text)}")


def _of_enum(text: str, schema: Any, root: Schema) -> str:
    """``text``, or what an enumeration has for it but for the white space around it."""
    values = values_of(resolved(schema, root))
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
