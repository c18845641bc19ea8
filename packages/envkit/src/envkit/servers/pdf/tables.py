# SPDX-License-Identifier: Apache-2.0
"""Ruled tables: lines to cells, cells to a grid, words into the grid.

A cell is the smallest rectangle whose four corners are crossings of lines and whose four sides
are drawn. Cells that share corners are one table. A table has at least two rows and two columns;
anything less is a frame around text. A merged cell is repeated in every place it covers, marked.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from envkit.servers.pdf.ink import Rule
from envkit.servers.pdf.words import Word, lines

SNAP = 3.0
"""Points: lines closer than this are the same line."""
REACH = 3.0
"""Points: a line that stops this short of a crossing still reaches it."""
MIN_LENGTH = 4.0
MERGED = "↳ "
MAX_LINES = 600
"""Of one direction; a page with more is a drawing."""

type Cell = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A ruled table and what is in it."""

    x0: float
    top: float
    x1: float
    bottom: float
    rows: list[list[str]]

    def pipes(self) -> str:
        """One row a line between pipes; an empty cell stays empty."""
        return "\n".join(f"| {' | '.join(row)} |" for row in self.rows)


@dataclass(slots=True)
class _Span:
    """A line at `at`, drawn from `start` to `stop`."""

    at: float
    start: float
    stop: float


def tables(rules: Iterable[Rule], words: Sequence[Word]) -> list[Table]:
    """The ruled tables of a page, from top to bottom."""
    across, down = _spans(rules)
    if not across or not down or max(len(across), len(down)) > MAX_LINES:
        return []
    found = [_table(group, words) for group in _connected(_cells(across, down))]
    return sorted((table for table in found if table), key=lambda t: (t.top, t.x0))


def _spans(rules: Iterable[Rule]) -> tuple[list[_Span], list[_Span]]:
    across: list[_Span] = []
    down: list[_Span] = []
    for rule in rules:
        width, height = rule.x1 - rule.x0, rule.bottom - rule.top
        if width >= height and width >= MIN_LENGTH:
            across.append(_Span((rule.top + rule.bottom) / 2, rule.x0, rule.x1))
        elif height >= MIN_LENGTH:
            down.append(_Span((rule.x0 + rule.x1) / 2, rule.top, rule.bottom))
    return _joined(_snapped(across)), _joined(_snapped(down))


def _snapped(spans: list[_Span]) -> list[_Span]:
    """Give lines that lie closer than SNAP one common position."""
    spans.sort(key=lambda s: s.at)
    group: list[_Span] = []
    for span in [*spans, _Span(float("inf"), 0, 0)]:
        if group and span.at - group[-1].at > SNAP:
            mean = sum(s.at for s in group) / len(group)
            for member in group:
                member.at = mean
            group = []
        group.append(span)
    return spans


def _joined(spans: list[_Span]) -> list[_Span]:
    """Join pieces of one line that touch."""
    out: list[_Span] = []
    for span in sorted(spans, key=lambda s: (s.at, s.start)):
        last = out[-1] if out else None
        if last and last.at == span.at and span.start <= last.stop + SNAP:
            last.stop = max(last.stop, span.stop)
        else:
            out.append(_Span(span.at, span.start, span.stop))
    return out


def _cells(across: list[_Span], down: list[_Span]) -> list[Cell]:
    """The smallest closed rectangles between crossings."""
    crossings: dict[tuple[float, float], tuple[int, int]] = {}
    for i, row in enumerate(across):
        for j, column in enumerate(down):
            if _meets(row, column.at) and _meets(column, row.at):
                crossings[column.at, row.at] = (i, j)
    xs, ys = sorted({x for x, _ in crossings}), sorted({y for _, y in crossings})
    found = (_cell_at(point, crossings, xs, ys) for point in crossings)
    return [cell for cell in found if cell]


def _meets(span: _Span, at: float) -> bool:
    return span.start - REACH <= at <= span.stop + REACH


def _cell_at(
    corner: tuple[float, float],
    crossings: dict[tuple[float, float], tuple[int, int]],
    xs: list[float],
    ys: list[float],
) -> Cell | None:
    """The smallest cell whose top left corner is `corner`."""
    x, y = corner
    row, column = crossings[corner]
    rights = [
        right
        for right in xs[bisect_left(xs, x) + 1 :]
        if crossings.get((right, y), (-1, -1))[0] == row
    ]
    for bottom in ys[bisect_left(ys, y) + 1 :]:
        below = crossings.get((x, bottom))
        if below is None or below[1] != column:
            continue
        for right in rights:
            opposite = crossings.get((right, bottom))
            above = crossings[right, y]
            if opposite and opposite[0] == below[0] and opposite[1] == above[1]:
                return x, y, right, bottom
    return None


def _connected(cells: list[Cell]) -> list[list[Cell]]:
    """Cells grouped by shared corners, each group from top to bottom."""
    parent = list(range(len(cells)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    first_at: dict[tuple[float, float], int] = {}
    for index, cell in enumerate(cells):
        for corner in _corners(cell):
            parent[root(index)] = root(first_at.setdefault(corner, index))
    groups: dict[int, list[Cell]] = {}
    for index, cell in enumerate(cells):
        groups.setdefault(root(index), []).append(cell)
    return list(groups.values())


def _corners(cell: Cell) -> list[tuple[float, float]]:
    return [(x, y) for x in (cell[0], cell[2]) for y in (cell[1], cell[3])]


def _table(cells: list[Cell], words: Sequence[Word]) -> Table | None:
    xs = sorted({x for c in cells for x in (c[0], c[2])})
    ys = sorted({y for c in cells for y in (c[1], c[3])})
    if len(xs) < 3 or len(ys) < 3 or len(cells) < 4:
        return None
    places = [_places(cell, xs, ys) for cell in cells]
    inside = _words_by_place(words, xs, ys)
    grid = [["" for _ in xs[1:]] for _ in ys[1:]]
    for covered in places:
        text = _text([word for place in covered for word in inside.get(place, ())])
        for row, column in covered:
            first = (row, column) == covered[0]
            grid[row][column] = text if first or not text else MERGED + text
    if not any(any(row) for row in grid):
        return None
    return Table(x0=xs[0], top=ys[0], x1=xs[-1], bottom=ys[-1], rows=grid)


def _places(cell: Cell, xs: list[float], ys: list[float]) -> list[tuple[int, int]]:
    """The places (row, column) of the grid that a cell covers."""
    columns = range(bisect_left(xs, cell[0]), bisect_left(xs, cell[2]))
    return [
        (r, c) for r in range(bisect_left(ys, cell[1]), bisect_left(ys, cell[3])) for c in columns
    ]


def _words_by_place(
    words: Sequence[Word], xs: list[float], ys: list[float]
) -> dict[tuple[int, int], list[Word]]:
    found: dict[tuple[int, int], list[Word]] = {}
    for word in words:
        x, y = (word.x0 + word.x1) / 2, word.middle
        if xs[0] <= x < xs[-1] and ys[0] <= y < ys[-1]:
            place = bisect_right(ys, y) - 1, bisect_right(xs, x) - 1
            found.setdefault(place, []).append(word)
    return found


def _text(inside: list[Word]) -> str:
    return " ".join(_line_text(line.words) for line in lines(inside)).replace("|", "\\|")


def _line_text(row: list[Word]) -> str:
    out = row[0].text
    for left, right in pairwise(row):
        touching = right.x0 - left.x1 <= 0.1 * left.height
        out += right.text if touching else f" {right.text}"
    return out
