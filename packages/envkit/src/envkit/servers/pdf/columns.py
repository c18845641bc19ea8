# SPDX-License-Identifier: Apache-2.0
"""Words to blocks in reading order, by cutting the page where text columns part.

A gutter is a vertical strip free of words over several lines. It parts text columns only when both
sides read as prose (lines that fill their column, several words a line, no wide inner gaps);
otherwise it separates the columns of a table, and rows must stay whole. The best gutter is cut:
what is above, then left, then right, then below, each cut again in the same way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from envkit.servers.pdf.words import Line, Word, lines

MIN_LINES = 4
"""A shorter block is not cut."""
BOTH_SIDES = 3
"""Lines with words on both sides that a gutter needs."""
MIN_GUTTER = 0.5
"""Of the line height."""
FILL = 0.6
"""Part of its column that the median line of prose covers."""
WORDS_A_LINE = 2.5
WIDE_GAP = 1.3
"""Of the line height: wider gaps inside a line speak for a table."""
WIDE_SHARE = 0.34
MAX_DEPTH = 8
FAR = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Gutter:
    """A strip from x0 to x1, free of words in lines first to last - 1."""

    first: int
    last: int
    x0: float
    x1: float


def blocks(found: Sequence[Word], depth: int = 0) -> list[list[Word]]:
    """The words in blocks, in the order a person reads them."""
    rows = lines(found)
    if len(rows) < MIN_LINES or depth > MAX_DEPTH:
        return [list(found)] if found else []
    gutter = _best_gutter(rows)
    if gutter is None:
        return [list(found)]
    middle = (gutter.x0 + gutter.x1) / 2
    inside = _words(rows[gutter.first : gutter.last])
    parts = (
        _words(rows[: gutter.first]),
        [word for word in inside if word.x1 <= middle],
        [word for word in inside if word.x1 > middle],
        _words(rows[gutter.last :]),
    )
    return [block for part in parts for block in blocks(part, depth + 1)]


def _words(rows: Sequence[Line]) -> list[Word]:
    return [word for row in rows for word in row.words]


def _best_gutter(rows: list[Line]) -> Gutter | None:
    """The longest gutter with prose on both sides; the wider of two equals."""
    for gutter in sorted(set(_gutters(rows)), key=_rank, reverse=True):
        if _parts_prose(rows[gutter.first : gutter.last], gutter.x0, gutter.x1):
            return gutter
    return None


def _rank(gutter: Gutter) -> tuple[int, float]:
    return gutter.last - gutter.first, gutter.x1 - gutter.x0


@dataclass(frozen=True, slots=True)
class _Gap:
    x0: float
    x1: float
    between: bool
    """Between two words; otherwise a margin."""


def _gutters(rows: list[Line]) -> Iterator[Gutter]:
    """Every gutter between two words; the same one may come twice."""
    narrowest = MIN_GUTTER * median(row.height for row in rows)
    gaps = [_gaps(row, narrowest) for row in rows]
    for x in _candidates(gaps):
        yield from _gutters_at(x, gaps, narrowest)


def _gaps(row: Line, narrowest: float) -> list[_Gap]:
    found = [_Gap(-FAR, row.words[0].x0, False)]
    edge = row.words[0].x1
    for word in row.words[1:]:
        if word.x0 - edge >= narrowest:
            found.append(_Gap(edge, word.x0, True))
        edge = max(edge, word.x1)
    return [*found, _Gap(edge, FAR, False)]


def _candidates(gaps: list[list[_Gap]]) -> list[int]:
    """Positions in the middle of a gap that enough lines share."""
    middles = sorted({round((g.x0 + g.x1) / 2) for row in gaps for g in row if g.between})
    return [
        x
        for x in middles
        if sum(any(g.between and g.x0 <= x <= g.x1 for g in row) for row in gaps) >= BOTH_SIDES
    ]


def _gutters_at(x: float, gaps: list[list[_Gap]], narrowest: float) -> Iterator[Gutter]:
    """Maximal runs of lines that are free around `x`."""
    first = 0
    while first < len(gaps):
        last, x0, x1, both = first, -FAR, FAR, 0
        while last < len(gaps):
            gap = next((g for g in gaps[last] if g.x0 <= x <= g.x1), None)
            if gap is None or min(x1, gap.x1) - max(x0, gap.x0) < narrowest:
                break
            x0, x1, both = max(x0, gap.x0), min(x1, gap.x1), both + gap.between
            last += 1
        if both >= BOTH_SIDES and x0 > -FAR and x1 < FAR:
            yield Gutter(first=first, last=last, x0=x0, x1=x1)
        first = max(last, first + 1)


def _parts_prose(rows: list[Line], x0: float, x1: float, *, deep: bool = True) -> bool:
    left = [[w for w in row.words if w.x1 <= x0 + 0.5] for row in rows]
    right = [[w for w in row.words if w.x0 >= x1 - 0.5] for row in rows]
    return all(_is_prose([row for row in side if row], deep=deep) for side in (left, right))


def _is_prose(rows: list[list[Word]], *, deep: bool) -> bool:
    """Filled lines of several words without wide gaps, or columns of such lines."""
    if len(rows) < BOTH_SIDES:
        return False
    left = min(row[0].x0 for row in rows)
    right = max(row[-1].x1 for row in rows)
    height = median(word.height for row in rows for word in row)
    wide = sum(_wide_gaps(row, height) for row in rows) / len(rows)
    words_a_line = sum(map(len, rows)) / len(rows)
    if wide >= WIDE_SHARE:
        return deep and words_a_line >= 2 * WORDS_A_LINE and _holds_columns(rows)
    fill = median((row[-1].x1 - row[0].x0) / max(1.0, right - left) for row in rows)
    return fill > FILL and words_a_line >= WORDS_A_LINE


def _wide_gaps(row: list[Word], height: float) -> int:
    return sum(b.x0 - a.x1 > WIDE_GAP * height for a, b in pairwise(row))


def _holds_columns(rows: list[list[Word]]) -> bool:
    """Whether the wide gaps are themselves a gutter between columns of prose."""
    inner = lines([word for row in rows for word in row])
    return any(
        g.last - g.first >= len(inner) / 2
        and _parts_prose(inner[g.first : g.last], g.x0, g.x1, deep=False)
        for g in set(_gutters(inner))
    )
