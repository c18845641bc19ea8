# SPDX-License-Identifier: Apache-2.0
"""Which command lines a warmed interpreter can answer: the common forms; all others are for a cold.

``-c TEXT``, ``-m MODULE``, ``-``, nothing, or a script; before them any of ``-B -E -I -s -u``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

type Kind = Literal["command", "module", "stdin", "script"]

_FLAGS: Final = frozenset("BEIsu")


class Cold(Exception):
    """Only a cold interpreter would do the right thing; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A parsed command line."""

    kind: Kind
    what: str
    """The text, the module's name or the script's path."""
    argv: tuple[str, ...]
    """``sys.argv`` as the program is to find it."""
    flags: frozenset[str] = frozenset()


def parse(arguments: Sequence[str]) -> Program:
    """Read what follows the interpreter's name.

    Raises:
        Cold: an option that is not known here.
    """
    flags: set[str] = set()
    rest = list(arguments)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        option = rest.pop(0)
        for place, letter in enumerate(option[1:], 2):
            if letter in "cm":
                what, tail = _value(option[place:], rest)
                kind: Kind = "command" if letter == "c" else "module"
                return _program(kind, what, (f"-{letter}", *tail), flags)
            if letter not in _FLAGS:
                raise Cold(f"option {option}")
            flags.add(letter)
    if not rest:
        return _program("stdin", "", ("",), flags)
    kind = "stdin" if rest[0] == "-" else "script"
    return _program(kind, rest[0], tuple(rest), flags)


def _value(attached: str, rest: list[str]) -> tuple[str, list[str]]:
    if attached:
        return attached, rest
    if not rest:
        raise Cold("an option without its value")
    return rest[0], rest[1:]


def _program(kind: Kind, what: str, argv: tuple[str, ...], flags: set[str]) -> Program:
    if "I" in flags:
        flags |= {"E", "s"}
    return Program(kind=kind, what=what, argv=argv, flags=frozenset(flags))
