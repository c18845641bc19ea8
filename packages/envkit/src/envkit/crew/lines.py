# SPDX-License-Identifier: Apache-2.0
"""What crosses the socket, as lines of JSON: one object a line, its kind under ``say``.

Contract: `read` undoes `line`. What is no such line raises `NotALine`, and nothing else: not JSON,
of a kind that is not known, or with a field that means nothing. The first line each way names the
schema, and another one's is refused before anything else is read.
"""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic import TypeAdapter, ValidationError

from envkit.crew.types import (
    SCHEMA,
    Begun,
    CrewOptions,
    Ended,
    Gauges,
    Notice,
    Phase,
    Ready,
    Refused,
    Restarted,
    TrialOrder,
)
from envkit.fault import HarnessError

LINE_MOST: Final = 16 * 2**20
"""Bytes. An agent's settings are thousands, the digests of all tasks a hundred thousand."""
SHOWN: Final = 200


class NotALine(HarnessError):
    """The other end of a crew's socket speaks something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What a crew says first."""

    version: str
    """Of its envkit."""
    schema: str = SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """What it is told first."""

    options: CrewOptions
    schema: str = SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Begin a trial."""

    order: TrialOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """End a trial."""

    trial: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The crew ends, and why: what stands in the way of opening it, or what it lost."""

    line: str


type Told = Open | Begin | Cancel
type Said = Hello | Ready | Begun | Restarted | Phase | Ended | Gauges | Refused | Notice | Failed

TOLD: Final[dict[str, type[Told]]] = {"open": Open, "begin": Begin, "cancel": Cancel}
SAID: Final[dict[str, type[Said]]] = {
    "hello": Hello,
    "ready": Ready,
    "begun": Begun,
    "restarted": Restarted,
    "phase": Phase,
    "ended": Ended,
    "gauges": Gauges,
    "refused": Refused,
    "notice": Notice,
    "failed": Failed,
}
_NAMES: Final = {kind: name for name, kind in {**TOLD, **SAID}.items()}


def line(message: Told | Said) -> bytes:
    """A message as one line. Raises NotALine where something in it is no JSON."""
    fields = {"say": _NAMES[type(message)], **asdict(message)}
    try:
        return orjson.dumps(fields, default=_plain, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError as error:
        raise NotALine(f"{fields['say']}: cannot be said: {error}") from error


def told(data: bytes) -> Told:
    """What a crew was told. Raises NotALine."""
    return _read(TOLD, data)


def said(data: bytes) -> Said:
    """What a crew said. Raises NotALine."""
    return _read(SAID, data)


def _read[T](kinds: dict[str, type[T]], data: bytes) -> T:
    try:
        fields: Any = orjson.loads(data)
        name = fields.pop("say")
        _expect_schema(fields)
        return _reader(kinds[name]).validate_python(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise NotALine(f"{_shown(data)}: {where}: {first['msg']}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotALine(f"{_shown(data)}: is none of {', '.join(kinds)}") from error


def _expect_schema(fields: dict[str, Any]) -> None:
    if (schema := fields.get("schema", SCHEMA)) != SCHEMA:
        raise NotALine(
            f"the other end speaks {schema!r}, this one {SCHEMA!r}; install envkit of one version "
            "in both environments"
        )


@functools.cache
def _reader[T](kind: type[T]) -> TypeAdapter[T]:
    return TypeAdapter(kind)


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{value!r} is no JSON")


def _shown(data: bytes) -> str:
    return data[:SHOWN].decode(errors="replace").strip()
