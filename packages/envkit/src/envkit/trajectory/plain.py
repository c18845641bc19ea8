# SPDX-License-Identifier: Apache-2.0
"""Records as plain data and back, by the annotations of their classes.

Contract: `from_plain` undoes `to_plain`, also where records of one kind stand as a list for each of
their fields, as `to_columns` writes them: names once, not once a record. It passes over keys that
it does not know, which a later minor version added, and gives a field that an earlier one did not
have its default.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

type Convert = Callable[[Any], Any]


def to_plain(value: Any) -> Any:
    """A record, a tuple or a mapping as dicts and lists of scalars."""
    if is_dataclass(value):
        return {name: to_plain(getattr(value, name)) for name in _names(type(value))}
    if isinstance(value, tuple):
        return [to_plain(each) for each in cast("tuple[Any, ...]", value)]
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    return value.value if isinstance(value, Enum) else value


def to_columns(records: Sequence[Any]) -> dict[str, list[Any]]:
    """Records of one class as a list of plain values for each field; empty for none."""
    names = _names(records[0].__class__) if records else ()
    return {name: [to_plain(getattr(each, name)) for each in records] for name in names}


def from_plain[T](cls: type[T], data: dict[str, Any]) -> T:
    """A record from what `to_plain` made of one.

    Raises:
        TypeError: a field without a default is missing.
        ValueError: a value is none of its enumeration.
    """
    names, converters = _plan(cls)
    known = data if data.keys() == names else {name: data[name] for name in names & data.keys()}
    made = {name: convert(known[name]) for name, convert in converters if name in known}
    return cls(**(known | made if made else known))


@cache
def _names(cls: type) -> tuple[str, ...]:
    return tuple(each.name for each in fields(cls))


@cache
def _plan(cls: type) -> tuple[frozenset[str], tuple[tuple[str, Convert], ...]]:
    """The fields of a class, and how to make those that are not their own plain form."""
    hints = get_type_hints(cls)
    converters = ((name, _converter(hints[name])) for name in _names(cls))
    return frozenset(_names(cls)), tuple((name, each) for name, each in converters if each)


def _converter(hint: Any) -> Convert | None:
    """How to make a value of this type; None where it is its own plain form."""
    if get_origin(hint) in (Union, types.UnionType):
        return _optional([each for each in get_args(hint) if each is not type(None)])
    if get_origin(hint) is tuple:
        return _each(get_args(hint)[0])
    if isinstance(get_origin(hint), type) and issubclass(get_origin(hint), Mapping):
        return dict
    if isinstance(hint, type) and is_dataclass(hint):
        return lambda data: data if isinstance(data, hint) else from_plain(hint, data)
    return hint if isinstance(hint, type) and issubclass(hint, Enum) else None


def _optional(choices: list[Any]) -> Convert | None:
    inner = _converter(choices[0]) if len(choices) == 1 else None
    return inner and (lambda value: None if value is None else inner(value))


def _each(hint: Any) -> Convert:
    inner = _converter(hint)
    if inner is None:
        return tuple

    def convert(values: Any) -> tuple[Any, ...]:
        if isinstance(values, dict):
            return rows_of(hint, cast("dict[str, list[Any]]", values))
        return tuple(map(inner, values))

    return convert


def rows_of[T](cls: type[T], columns: dict[str, list[Any]]) -> tuple[T, ...]:
    """Records from what `to_columns` made of them; raises as `from_plain` does."""
    names, converters = _plan(cls)
    known = {name: values for name, values in columns.items() if name in names}
    known |= {
        name: list(map(convert, known[name])) for name, convert in converters if name in known
    }
    rows = zip(*known.values(), strict=True)
    return tuple(cls(**dict(zip(known, row, strict=True))) for row in rows)
