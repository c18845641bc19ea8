# SPDX-License-Identifier: Apache-2.0
"""A call as it was said, and why one could not be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from envkit.agent.parse.reader import Reader
from envkit.agent.types import Unreadable

type Code = Literal[
    "malformed",
    "unclosed",
    "unknown_tool",
    "wrong_type",
    "missing_argument",
    "unknown_argument",
    "inside_think",
    "cut_off",
]

SHOWN: Final = 60
"""How many characters of a model's own text a message repeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawCall:
    """A call as it was said."""

    name: str
    arguments: Mapping[str, Any]
    spoken: bool = False
    """Arguments are text, which the tool's schema gives a type."""


class Broken(Exception):
    """A call that cannot be read; reading goes on at ``at``."""

    def __init__(self, code: Code, message: str, at: int = 0) -> None:
        super().__init__(message)
        self.code: Code = code
        self.message = message
        self.at = at


class NoCall(Exception):
    """What looked like a call is content up to ``at``."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


class Format(Protocol):
    """One way of saying calls."""

    name: str
    example: str
    """How a call is said."""
    think: tuple[str, str]
    """What opens and closes a block of thinking."""

    def seek(self, reader: Reader, at: int) -> int:
        """Where the next call, or what only belongs into one, begins; -1 where none does."""
        ...

    def read(self, reader: Reader, at: int) -> tuple[list[RawCall | Broken], int]:
        """The calls that begin at ``at``, what is broken among them, and where they end.

        Raises:
            Broken: they cannot be read at all.
            NoCall: there is none after all.
        """
        ...


def shown(text: str) -> str:
    """A beginning of the model's own text, as a message repeats it."""
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}…")


def cut_off(tokens: int) -> Unreadable:
    """What a model is told whose turn used up its ``tokens``."""
    return Unreadable(
        code="cut_off",
        message=f"Your turn was cut off after {tokens} tokens, so nothing in it was carried out. "
        "Say less in one turn: shorter thoughts, or a long text in several calls.",
    )
