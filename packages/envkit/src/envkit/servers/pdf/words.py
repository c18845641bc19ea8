# SPDX-License-Identifier: Apache-2.0
"""Characters to words, and words to lines.

Words are built in the order the page draws them, so that two texts printed over each other are
not mixed letter by letter; lines are built by position alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from envkit.servers.pdf.ink import Char

WORD_GAP = 0.15
"""Of the font size: a wider gap between two characters ends the word."""
SAME_LINE = 0.5
"""Of the height: words whose middles are closer share a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word, or a whole table standing in its place on the page."""

    text: str
    x0: float
    top: float
    x1: float
    bottom: float
    table: str = ""

    @property
    def middle(self) -> float:
        """Of its height."""
        return (self.top + self.bottom) / 2

    @property
    def height(self) -> float:
        """In points."""
        return self.bottom - self.top


@dataclass(slots=True)
class Line:
    """Words that share a baseline, from left to right."""

    middle: float
    height: float
    words: list[Word] = field(default_factory=list[Word])


def single(chars: Iterable[Char]) -> list[Char]:
    """The characters without those printed twice in the same place (false bold, shadows)."""
    seen: dict[tuple[str, int, int], Char] = {}
    kept: list[Char] = []
    for char in chars:
        column, row = int(char.x0), int(char.bottom)
        near = (seen.get((char.text, column + dx, row + dy)) for dx in _NEAR for dy in _NEAR)
        if char.text != " " and any(other and _same_place(char, other) for other in near):
            continue
        seen[char.text, column, row] = char
        kept.append(char)
    return kept


_NEAR = (-1, 0, 1)


def _same_place(a: Char, b: Char) -> bool:
    """Of two objects: one object that repeats a place holds a ligature taken apart."""
    near = min(1.0, 0.3 * a.size)
    return a.owner != b.owner and abs(a.x0 - b.x0) <= near and abs(a.bottom - b.bottom) <= near


def words(chars: Iterable[Char]) -> list[Word]:
    """Words in drawing order."""
    found: list[Word] = []
    current: list[Char] = []
    for char in chars:
        if current and (char.text == " " or not _continues(current[-1], char)):
            found.append(_word(current))
            current = []
        if char.text.strip():
            current.append(char)
    if current:
        found.append(_word(current))
    return found


def _continues(last: Char, char: Char) -> bool:
    if last.owner == char.owner and abs(last.x0 - char.x0) < 0.01:
        return True
    size = max(last.size, char.size)
    gap = char.x0 - last.x1
    backwards = last.x0 - char.x1
    level = abs(last.bottom - char.bottom) <= 0.35 * size
    if not level or (last.bottom - last.top) > 2.5 * (char.bottom - char.top):
        return False
    return -0.5 * size <= gap <= WORD_GAP * size or (
        _is_rtl(char.text) and -0.5 * size <= backwards <= WORD_GAP * size
    )


def _is_rtl(text: str) -> bool:
    return any("\u0590" <= c <= "\u08ff" or "\ufb1d" <= c <= "\ufefc" for c in text)


def _word(chars: list[Char]) -> Word:
    ordered = chars
    if _is_rtl(chars[0].text) and chars[0].x0 < chars[-1].x0:
        ordered = chars[::-1]
    return Word(
        text="".join(char.text for char in ordered),
        x0=min(char.x0 for char in chars),
        top=min(char.top for char in chars),
        x1=max(char.x1 for char in chars),
        bottom=max(char.bottom for char in chars),
    )


def lines(found: Iterable[Word]) -> list[Line]:
    """Lines from top to bottom."""
    out: list[Line] = []
    for word in sorted(found, key=lambda w: (w.middle, w.x0)):
        last = out[-1] if out else None
        if last and abs(last.middle - word.middle) <= SAME_LINE * min(word.height, last.height):
            last.words.append(word)
        else:
            out.append(Line(word.middle, word.height, [word]))
    for line in out:
        line.words.sort(key=lambda w: w.x0)
    return out


def in_reading_order(line: Sequence[Word]) -> list[Word]:
    """The words of a line as they are read: right to left where most of it is."""
    if sum(_is_rtl(word.text) for word in line) * 2 <= len(line):
        return list(line)
    return list(reversed(line))


def shifted(word: Word, top: float) -> Word:
    """The word at another height; a table stands at its first line."""
    return replace(word, top=top, bottom=top + word.height)
