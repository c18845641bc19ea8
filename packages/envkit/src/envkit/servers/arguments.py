# SPDX-License-Identifier: Apache-2.0
"""The argument forms a tool accepts, and the flat schema that advertises them.

A tool's arguments are a pydantic model derived from `Arguments`. Accepted: flat, wrapped in
`input` or `request` (as an object or as JSON text), and JSON text where an array or an object is
expected. A null counts as absent. An unknown argument is an error that names the nearest valid
one. The advertised schema has no references, no titles, no `nullable` and no null branches.
"""

import difflib
import json
from collections.abc import Mapping
from types import UnionType
from typing import Any, Literal, Union, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from envkit.servers.contract import ToolFault

WRAPPERS = ("input", "request")


class Arguments(BaseModel):
    """Base of every tool's arguments. Field descriptions are what the model reads."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


def parse[T: Arguments](model: type[T], raw: Mapping[str, object] | None) -> T:
    """`raw` as the tool's arguments; raises ToolFault naming the one wrong field."""
    given = _unwrap(dict(raw or {}), set(model.model_fields))
    _refuse_unknown(model, given)
    present = {name: _decode(model, name, value) for name, value in given.items()}
    try:
        return model.model_validate({k: v for k, v in present.items() if v is not None})
    except ValidationError as error:
        raise _fault(model, error.errors(include_url=False)[0]) from None


def _unwrap(given: dict[str, object], known: set[str]) -> dict[str, object]:
    """Take the inner object out of `{"input": {...}}` and `{"request": {...}}`."""
    for wrapper in WRAPPERS:
        if set(given) == {wrapper} and wrapper not in known:
            inner = _json_or_same(given[wrapper])
            if isinstance(inner, dict):
                return _unwrap(cast(dict[str, object], inner), known)
            raise ToolFault(
                "invalid_argument",
                f"`{wrapper}` must hold an object of arguments.",
                field=wrapper,
                fix=f"Pass the arguments flat: {', '.join(sorted(known))}.",
            )
    return given


def _json_or_same(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _refuse_unknown(model: type[Arguments], given: Mapping[str, object]) -> None:
    known = list(model.model_fields)
    for name in given:
        if name in known:
            continue
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"Did you mean `{near[0]}`? " if near else ""
        valid = ", ".join(known) or "none"
        raise ToolFault(
            "unknown_argument",
            f"There is no argument `{name[:80]}`.",
            field=name[:80],
            fix=f"{hint}Valid arguments: {valid}.",
        )


def _decode(model: type[Arguments], name: str, value: object) -> object:
    """JSON text as the array or object it spells, where the field wants one."""
    if isinstance(value, str) and not _takes_text(model.model_fields[name].annotation):
        return _json_or_same(value)
    return value


def _takes_text(annotation: object) -> bool:
    if get_origin(annotation) in (Union, UnionType):
        return any(_takes_text(option) for option in get_args(annotation))
    return annotation is str or get_origin(annotation) is Literal


def _fault(model: type[Arguments], error: ErrorDetails) -> ToolFault:
    where = ".".join(str(part) for part in error["loc"]) or "arguments"
    top = str(error["loc"][0]) if error["loc"] else ""
    if error["type"] == "missing":
        required = [n for n, f in model.model_fields.items() if f.is_required()]
        return ToolFault(
            "missing_argument",
            f"`{where}` is required.",
            field=where,
            fix=f"Required: {', '.join(f'`{name}`' for name in required)}.",
        )
    about = model.model_fields[top].description if top in model.model_fields else ""
    return ToolFault(
        "invalid_argument",
        f"`{where}`: {error['msg'][0].lower()}{error['msg'][1:]}.",
        field=where,
        fix=f"`{top}` is: {about}." if about else "See the tool's schema.",
    )


def input_schema(model: type[Arguments]) -> dict[str, Any]:
    """The schema to advertise: flat, references inlined, no null."""
    raw = model.model_json_schema()
    schema = cast(dict[str, Any], _flat(raw, raw.get("$defs", {})))
    schema.setdefault("properties", {})
    return schema


_DROPPED = {"title", "$defs"}


def _flat(node: Any, defs: Mapping[str, Any]) -> Any:
    if isinstance(node, list):
        return [_flat(item, defs) for item in cast(list[Any], node)]
    if not isinstance(node, dict):
        return node
    held = cast(dict[str, Any], node)
    if "$ref" in held:
        rest = {k: v for k, v in held.items() if k != "$ref"}
        return _flat({**defs[held["$ref"].rsplit("/", 1)[1]], **rest}, defs)
    if "anyOf" in held:
        held = _without_null(held)
    flat: dict[str, Any] = {}
    for key, value in held.items():
        if key == "properties":
            flat[key] = {name: _flat(sub, defs) for name, sub in value.items()}
        elif key not in _DROPPED and not (key == "default" and value is None):
            flat[key] = _flat(value, defs)
    return flat


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    branches = [b for b in node["anyOf"] if b.get("type") != "null"]
    rest = {k: v for k, v in node.items() if k != "anyOf"}
    return {**branches[0], **rest} if len(branches) == 1 else {**rest, "anyOf": branches}
