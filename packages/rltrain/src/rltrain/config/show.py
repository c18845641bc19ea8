# SPDX-License-Identifier: Apache-2.0
"""Resolved settings as TOML: every value, also those that nobody gave."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from rltrain.config.read import BY_NAME


def shown(settings: Any) -> str:
    """The text that `rltrain.config.read.read` makes the same settings of."""
    return "\n".join(_table(settings, "", {})) + "\n"


def _table(settings: Any, where: str, first: Mapping[str, Any]) -> Iterator[str]:
    """A table's own values, then the tables in it."""
    values, tables = dict(first), dict[str, tuple[Any, dict[str, Any]]]()
    for each in fields(settings):
        value = getattr(settings, each.name)
        if is_dataclass(value):
            tables[each.name] = (value, _name(each.metadata.get(BY_NAME), value))
        elif value is not None:
            values[each.name] = value
    if where and values:
        yield f"\n[{where}]"
    for name, value in values.items():
        yield f"{name} = {_value(value)}"
    for name, (value, named) in tables.items():
        yield from _table(value, f"{where}.{name}" if where else name, named)


def _name(registry: Mapping[str, type[Any]] | None, value: Any) -> dict[str, Any]:
    """The name that chooses a class."""
    names = [name for name, cls in (registry or {}).items() if cls is type(value)]
    return {"name": names[0]} if names else {}


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_value, value))}]"  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, (int, float)):
        return repr(value)
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
