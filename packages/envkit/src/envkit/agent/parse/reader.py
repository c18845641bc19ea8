# SPDX-License-Identifier: Apache-2.0
"""A text read from left to right, in time linear in its length.

Contract: whoever asks with places that never go back makes each search pass over the text once, no
matter how often it is asked: what was found is remembered until a place beyond it is asked for.
``scanned`` counts the characters that were passed over.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn, cast

MOST_DEPTH: Final = 100
"""Values nested deeper are not read."""

SHOWN_DIGITS: Final = 60
"""How many of a number's digits a message repeats."""

_NOT_SPACE: Final = re.compile(r"\S|\Z")


class NotJson(Exception):
    """No JSON value stands there."""


class Reader:
    """One text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.scanned = 0
        self._found: dict[str, tuple[int, int]] = {}

    def find(self, marker: str, at: int) -> int:
        """Where ``marker`` stands from ``at`` on; -1 where it does not."""

        def look(start: int) -> int:
            return self._passed(start, self.text.find(marker, start))

        return self.search(marker, at, look)

    def find_regex(self, pattern: re.Pattern[str], at: int) -> int:
        """Where ``pattern``, which must be linear itself, stands from ``at`` on; or -1."""

        def look(start: int) -> int:
            found = pattern.search(self.text, start)
            return self._passed(start, found.start() if found else -1)

        return self.search(pattern.pattern, at, look)

    def find_before(self, marker: str, following: Sequence[str], at: int) -> int:
        """Where ``marker`` stands with nothing but white space before one of ``following``."""

        def look(start: int) -> int:
            place = self._passed(start, self.text.find(marker, start))
            while place >= 0 and not self.starts(following, self.skip(place + len(marker))):
                start = place + len(marker)
                place = self._passed(start, self.text.find(marker, start))
            return place

        return self.search(f"{marker} {following}", at, look)

    def nearest(self, markers: Sequence[str], at: int) -> tuple[int, str]:
        """The first of ``markers`` from ``at`` on, and which; (-1, "") where none stands."""
        places = [(place, each) for each in markers if (place := self.find(each, at)) >= 0]
        return min(places, default=(-1, ""))

    def search(self, key: str, at: int, look: Callable[[int], int]) -> int:
        """What ``look`` finds from ``at`` on, remembered by ``key``."""
        start, place = self._found.get(key, (-1, -1))
        if start < 0 or at < start or 0 <= place < at:
            start, place = at, look(at)
            self._found[key] = (start, place)
        return place

    def starts(self, markers: Sequence[str], at: int) -> bool:
        """Whether one of ``markers`` stands at ``at``; an empty one stands at the end only."""
        return any(
            self.text.startswith(each, at) if each else at >= len(self.text) for each in markers
        )

    def skip(self, at: int) -> int:
        """The first place from ``at`` on that is not white space."""
        found = _NOT_SPACE.search(self.text, at)
        return self._passed(at, found.start() if found else -1)

    def json(self, at: int) -> tuple[Any, int]:
        """The JSON value at ``at``, and where it ends.

        Raises:
            NotJson: there is none; the message says what is wrong and at which character.
        """
        try:
            value, end = _DECODER.raw_decode(self.text, at)
        except json.JSONDecodeError as error:
            endless = error.msg.startswith("Unterminated")
            self._passed(at, -1 if endless else error.pos)
            raise NotJson(f"{error.msg} at character {error.pos - at} of it") from error
        except (ValueError, RecursionError) as error:
            raise NotJson(str(error)) from error
        self._passed(at, end)
        _check(value, self.text[at:end])
        return value, end

    def _passed(self, start: int, place: int) -> int:
        self.scanned += (place if place >= 0 else len(self.text)) - start + 1
        return place


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _finite(digits: str) -> float:
    if not math.isfinite(value := float(digits)):
        raise ValueError(f"{digits[:SHOWN_DIGITS]} is too large for a number")
    return value


_DECODER: Final = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)


def _check(value: Any, text: str) -> None:
    level: list[Any] = [value]
    for _ in range(MOST_DEPTH):
        level = [inner for each in level for inner in _inner(each)]
        if not level:
            break
    else:
        raise NotJson(f"nested deeper than {MOST_DEPTH}")
    if "\\u" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise NotJson("half of a surrogate pair in a string") from error


def _inner(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else []
