# SPDX-License-Identifier: Apache-2.0
"""Tables: ruled or borderless, their numbers to the right, and how amounts and dates are shown."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from reportlab.lib import colors
from reportlab.platypus import Table, TableStyle

type Rows = Sequence[Sequence[str]]

_PLAIN = [("FONTNAME", (0, 0), (-1, 0), "Helvetica-Bold")]


def ruled(
    rows: Rows, *, text_columns: int = 1, size: float = 9, height: float | None = None
) -> Table:
    """A grid; its first row is repeated on every page that the table reaches."""
    return _table(rows, text_columns, size, [("GRID", (0, 0), (-1, -1), 0.5, colors.black)], height)


def borderless(rows: Rows, *, text_columns: int = 1, size: float = 9) -> Table:
    """No lines at all: columns are told apart by their places alone."""
    return _table(rows, text_columns, size, [], None)


def _table(
    rows: Rows,
    text_columns: int,
    size: float,
    lines: list[tuple[object, ...]],
    height: float | None,
) -> Table:
    heights = None if height is None else [height] * len(rows)
    table = Table([list(row) for row in rows], rowHeights=heights, repeatRows=1, hAlign="LEFT")
    aligned = [("ALIGN", (text_columns, 0), (-1, -1), "RIGHT")]
    table.setStyle(TableStyle([*_PLAIN, *aligned, ("FONTSIZE", (0, 0), (-1, -1), size), *lines]))
    return table


def pounds(amount: Decimal | int) -> str:
    """`12,345.60`, as invoices have it."""
    return f"{amount:,.2f}"


def whole(amount: Decimal | float) -> str:
    """`12,346`, as reports have it; a dash for nothing."""
    return f"{amount:,.0f}" if amount else "\N{EN DASH}"


def percent(permille: int) -> str:
    """`7.5 %` or `8 %`."""
    return f"{permille / 10:g} %"


def day(found: date) -> str:
    """`8 July 2025`."""
    return f"{found.day} {found:%B %Y}"
