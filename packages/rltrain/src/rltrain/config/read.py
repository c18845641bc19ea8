# SPDX-License-Identifier: Apache-2.0
"""From TOML to dataclasses, by their annotations.

A field that may be one of several dataclasses (a loss, for one) is chosen by ``name`` in its table,
through the registry that the field's metadata carries under ``by_name``. Names that somebody may
look for in a field's table and that must not be there have their reasons under ``never``.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from rltrain.refused import Refused

BY_NAME = "by_name"
NAME = "name"
"""The key that chooses a class by its registered name."""
NEVER = "never"


def by_name(registry: Mapping[str, type[Any]]) -> dict[str, Mapping[str, type[Any]]]:
    """Metadata of a field whose class its ``name`` in TOML chooses."""
    return {BY_NAME: registry}


def never(reasons: Mapping[str, str]) -> dict[str, Mapping[str, str]]:
    """Metadata of a field whose table has none of these settings, by name and reason."""
    return {NEVER: reasons}


def read[T](cls: type[T], file: Path | None, settings: Sequence[str] = ()) -> T:
    """The settings in a file, with ``a.b=c`` of a command line over them.

    Raises:
        Refused: the file cannot be read, or something in it means nothing.
    """
    return made(cls, with_settings(_table(file) if file else {}, settings))


def _table(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise Refused(f"{file}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused(f"{file}: is no TOML: {error}") from error


def with_settings(table: Mapping[str, Any], settings: Sequence[str]) -> dict[str, Any]:
    """A table with single values set over it; what is no TOML value is taken for text.

    Another ``name`` chooses another class, whose settings begin anew: those of the one before it
    mean nothing there.
    """
    whole: dict[str, Any] = {**table}
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals or not all(path.split(".")):
            raise Refused(f"--set {setting}: give NAME=VALUE, as objective.loss.cap=5")
        *tables, name = path.split(".")
        inner = whole
        for each in tables:
            below = inner.get(each, {})
            if not isinstance(below, dict):
                raise Refused(f"--set {setting}: {each} is a value and has nothing in it")
            inner[each] = dict(cast("dict[str, Any]", below))
            inner = inner[each]
        value = _value(text)
        if name == NAME and inner.get(NAME, value) != value:
            inner.clear()
        inner[name] = value
    return whole


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def made[T](
    cls: type[T],
    table: Mapping[str, Any],
    where: str = "",
    reasons: Mapping[str, str] = MappingProxyType({}),
) -> T:
    """A dataclass from a table; ``reasons`` are of names that it does not have.

    Raises:
        Refused: a name or a value means nothing, or values contradict each other.
    """
    known = {each.name: each for each in fields(cast(Any, cls))}
    for name in table:
        if name not in known:
            absent = f"there is no such setting{_nearest(name, known)}"
            raise Refused(f"{_at(where, name)}: {reasons.get(name, absent)}")
    for name, each in known.items():
        if name not in table and each.default is MISSING and each.default_factory is MISSING:
            raise Refused(f"{_at(where, name)}: must be given; it has no default")
    given = {
        name: _field(known[name], _hints(cls)[name], value, _at(where, name))
        for name, value in table.items()
    }
    try:
        return cls(**given)
    except (ValueError, TypeError) as error:
        raise Refused(f"{where or 'settings'}: {error}") from error


def _field(known: Field[Any], hint: Any, value: Any, where: str) -> Any:
    registry: Mapping[str, type[Any]] | None = known.metadata.get(BY_NAME)
    reasons: Mapping[str, str] = known.metadata.get(NEVER, {})
    if registry is not None:
        return _chosen(registry, value, where, reasons)
    table = _dataclass_in(hint)
    if table is not None:
        return made(table, _as_table(value, where), where, reasons)
    try:
        return _reader(hint).validate_python(value)
    except ValidationError as error:
        said = error.errors(include_url=False)[0]["msg"]
        raise Refused(f"{where}: {value!r}: {said[0].lower()}{said[1:]}") from error


def _dataclass_in(hint: Any) -> type[Any] | None:
    """The dataclass that a hint means, also where it may be None; None for plain values."""
    found = [each for each in (hint, *get_args(hint)) if is_dataclass(each)]
    return cast("type[Any]", found[0]) if found else None


def _chosen(
    registry: Mapping[str, type[Any]], value: Any, where: str, reasons: Mapping[str, str]
) -> Any:
    table = dict(_as_table(value, where))
    name = table.pop(NAME, None)
    if name is None:
        raise Refused(f"{where}: give a name, one of {', '.join(registry)}")
    if name not in registry:
        raise Refused(f"{where}.{NAME}: there is no {name!r}{_nearest(str(name), registry)}")
    return made(registry[name], table, where, reasons)


def _as_table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Refused(f"{where}: {value!r} is a value, and a table is wanted")
    return cast("Mapping[str, Any]", value)


def _nearest(name: str, known: Mapping[str, object]) -> str:
    found = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {found[0]}?" if found else f"; there are {', '.join(known)}"


def _at(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


@cache
def _reader(hint: Any) -> TypeAdapter[Any]:
    return TypeAdapter(hint)
