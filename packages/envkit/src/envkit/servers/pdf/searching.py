# SPDX-License-Identifier: Apache-2.0
"""Matches across line ends, table cells and hyphens.

The text of a page is reduced: runs of white space and cell borders become one space, a hyphen at
a line's end joins its halves, and each reduced character knows where it came from, so that the
context of a match is shown as the page reads.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BREAK = re.compile(r"(?<=\w)-[ \t]*\n[ \t]*(?=[a-z])|[\s|]+")
_QUERY_SPACE = re.compile(r"[\s|]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """Reduced text and the place of each of its characters."""

    text: str
    places: list[int]


def reduced(text: str) -> Reduced:
    """`text` with breaks made one space and hyphenated words joined."""
    out: list[str] = []
    places: list[int] = []
    at = 0
    for gap in _BREAK.finditer(text):
        out.append(text[at : gap.start()])
        places.extend(range(at, gap.start()))
        if not gap.group().startswith("-"):
            out.append(" ")
            places.append(gap.start())
        at = gap.end()
    out.append(text[at:])
    places.extend(range(at, len(text)))
    return Reduced(text="".join(out), places=places)


def pattern(query: str, *, case_sensitive: bool, whole_word: bool) -> re.Pattern[str]:
    """The literal query as a pattern over reduced text."""
    literal = re.escape(_QUERY_SPACE.sub(" ", query).strip())
    if whole_word:
        literal = rf"(?<!\w){literal}(?!\w)"
    return re.compile(literal, 0 if case_sensitive else re.IGNORECASE)


def matches(text: str, wanted: re.Pattern[str], context: int) -> Iterator[str]:
    """Each match with `context` characters on both sides, on one line."""
    held = reduced(text)
    for hit in wanted.finditer(held.text):
        before = max(0, hit.start() - context)
        after = min(len(held.text), hit.end() + context)
        head = "..." if before else ""
        tail = "..." if after < len(held.text) else ""
        yield f"{head}{held.text[before:after].strip()}{tail}"
