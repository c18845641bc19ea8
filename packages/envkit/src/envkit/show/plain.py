# SPDX-License-Identifier: Apache-2.0
"""Text of models and boxes as text alone, of many lines, cut to what a person reads.

Contract: nothing in it moves a cursor, colours, reorders or hides anything. What is no letter,
mark or space is spelt out, ``\\x1b``, so that a reader sees that it was there.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final

from envkit.preflight.text import UNSAFE, count

KEPT: Final = frozenset("\n\t\u200c\u200d")
"""Of the unsafe categories: lines, and what joins letters and pictures."""


def plain(text: str) -> str:
    """``text`` with everything spelt out that is not to be looked at but obeyed."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_plain, text.replace("\r\n", "\n")))


def _plain(char: str) -> str:
    if char in KEPT or unicodedata.category(char) not in UNSAFE | {"Cn"}:
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How much of a text is shown."""

    lines: int = 14
    """About a third of a screen."""
    characters: int = 1400
    head: float = 2 / 3
    """Of what is shown; the rest is its end."""


USUAL: Final = Cut()
PROMPT: Final = Cut(lines=44, characters=4000, head=0.2)
"""What is asked stands at a prompt's end, behind the tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortened:
    """A text with its middle left out."""

    head: str
    tail: str = ""
    left_out: str = ""
    """How much, in words; empty where nothing is."""


def shorten(text: str, to: Cut = USUAL) -> Shortened:
    """At most so many lines and characters of a text, from its beginning and its end."""
    text = text.strip("\n")
    rows = text.split("\n")
    lines, characters, head = to.lines, to.characters, to.head
    if len(rows) <= lines and len(text) <= characters:
        return Shortened(head=text)
    first, last = int(lines * head), lines - int(lines * head)
    if len(rows) <= lines:
        first, last = len(rows), 0
    start = "\n".join(rows[:first])[: int(characters * head)]
    tail = "\n".join(rows[len(rows) - last :]) if last else text
    most = min(int(characters * (1 - head)), len(text) - len(start))
    tail = tail[max(0, len(tail) - most) :]
    cut = text[len(start) : len(text) - len(tail)]
    if len(cut) < 80:
        return Shortened(head=text)
    whole = cut.strip("\n").count("\n") + 1 if "\n" in cut else 0
    more = f"{count(whole, 'line')}, " if whole else ""
    return Shortened(head=start, tail=tail, left_out=f"{more}{count(len(cut), 'character')}")
