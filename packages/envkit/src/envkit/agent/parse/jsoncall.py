# SPDX-License-Identifier: Apache-2.0
"""A call that was said as a JSON object."""

from __future__ import annotations

from typing import Any, cast

from envkit.agent.parse.raw import Broken, RawCall, shown
from envkit.agent.parse.schema import kind

KEYS = ("arguments", "parameters")


def json_call(value: Any, at: int) -> RawCall:
    """The call that a JSON value says; reading goes on at ``at`` where it says none.

    Raises:
        Broken: it is no object with a name and an object of arguments.
    """
    if not isinstance(value, dict):
        raise Broken("malformed", f"the call is {_a(value)}, not an object", at)
    call = cast("dict[str, Any]", value)
    name = call.get("name")
    if not isinstance(name, str):
        raise Broken("malformed", 'the call has no string "name"', at)
    arguments: Any = next((call[key] for key in KEYS if key in call), dict[str, Any]())
    if not isinstance(arguments, dict):
        raise Broken(
            "malformed", f"the arguments of {shown(name)} are {_a(arguments)}, not an object", at
        )
    return RawCall(name=name, arguments=cast("dict[str, Any]", arguments))


def json_calls(values: list[Any], at: int) -> list[RawCall | Broken]:
    """The calls that JSON values say, and what is broken among them."""
    return [_call_or_broken(each, at) for each in values]


def is_call(value: Any) -> bool:
    """Whether a JSON value that stands by itself can only be meant as a call."""
    if not isinstance(value, dict):
        return False
    call = cast("dict[str, Any]", value)
    return isinstance(call.get("name"), str) and any(key in call for key in KEYS)


def _call_or_broken(value: Any, at: int) -> RawCall | Broken:
    try:
        return json_call(value, at)
    except Broken as broken:
        return broken


def _a(value: Any) -> str:
    named = kind(value)
    return f"{'an' if named[0] in 'aio' else 'a'} {named}" if named != "null" else "null"
