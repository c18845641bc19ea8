# SPDX-License-Identifier: Apache-2.0
"""A call by its tool's schema: known tool, known arguments, none missing, each of its type."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from envkit.agent.parse.check import check
from envkit.agent.parse.raw import Broken, RawCall, shown
from envkit.agent.parse.schema import Schema, Wrong, allowed, either, named, required
from envkit.agent.parse.spoken import from_text
from envkit.agent.types import CallRequest, ToolSpec

MOST_LISTED: Final = 12
"""How many names a message lists."""
LONGEST_NAME: Final = 100
"""Names are compared up to this length."""


def typed(raw: RawCall, tools: Mapping[str, ToolSpec]) -> CallRequest:
    """The call, with its arguments as the tool takes them.

    Raises:
        Broken: the tool does not take it so, or there is none.
    """
    tool = tools.get(raw.name)
    if tool is None:
        raise Broken(
            "unknown_tool", f"there is no tool {shown(raw.name)}{_nearest(raw.name, tools)}"
        )
    known = named(tool.parameters, "properties")
    _check_names(raw, tool, known)
    arguments = {
        key: _value(key, value, raw, tool, known.get(key)) for key, value in raw.arguments.items()
    }
    return CallRequest(name=raw.name, arguments=arguments)


def signature(tool: ToolSpec) -> str:
    """What a tool takes, in one line."""
    known = named(tool.parameters, "properties")
    needed = required(tool.parameters)
    parts = [
        f"{key} ({either(allowed(each, tool.parameters)) or 'anything'}"
        f"{', required' if key in needed else ''})"
        for key, each in known.items()
    ]
    return f"{tool.name} takes {', '.join(parts) or 'no arguments'}"


def _check_names(raw: RawCall, tool: ToolSpec, known: Schema) -> None:
    missing = [each for each in required(tool.parameters) if each not in raw.arguments]
    unknown = [each for each in raw.arguments if each not in known]
    if unknown and _closed(tool.parameters):
        name = f"{tool.name} has no argument {shown(unknown[0])}{_nearest(unknown[0], known)}"
        raise Broken("unknown_argument", f"{name}; {signature(tool)}")
    if missing:
        lacking = ", ".join(missing[:MOST_LISTED])
        raise Broken("missing_argument", f"{tool.name} was not given {lacking}; {signature(tool)}")


def _closed(schema: Schema) -> bool:
    """Whether arguments that are not listed are wrong: so unless it says otherwise."""
    more = schema.get("additionalProperties", False)
    return "properties" in schema and more is False and "patternProperties" not in schema


def _value(key: str, value: Any, raw: RawCall, tool: ToolSpec, schema: Any) -> Any:
    try:
        if raw.spoken:
            value = from_text(value, schema, tool.parameters)
        check(value, schema, tool.parameters)
    except Wrong as wrong:
        message = f"{tool.name}: {key} {wrong}; {signature(tool)}"
        raise Broken("wrong_type", message) from wrong
    return value


def _nearest(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(name[:LONGEST_NAME], names, n=3)
    if near:
        return f"; nearest: {', '.join(near)}"
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return f"; there are {', '.join(names[:MOST_LISTED])}{more}" if names else "; there are none"
