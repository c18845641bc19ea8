# SPDX-License-Identifier: Apache-2.0
"""A workbook whose formulas carry their values, so that a reader without a calculator sees numbers.

The writer of a sheet gives both: the formula, and the value from the facts. `Sheet.at` gives the
value of a cell written before, for the formulas that build on it. Cells are named as in the
spreadsheet, `B4`; the first row is 1.
"""

import io
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path

from xlsxwriter import Workbook
from xlsxwriter.format import Format
from xlsxwriter.utility import xl_cell_to_rowcol, xl_col_to_name
from xlsxwriter.worksheet import Worksheet

from forms.archive import settled

type Plain = str | int | float | bool | date | None
type Properties = Mapping[str, object]

TITLE: Properties = {"bold": True, "font_size": 14}
HEAD: Properties = {"bold": True, "bg_color": "#DDE6EE", "text_wrap": True, "bottom": 1}
TOTAL: Properties = {"bold": True, "top": 1}
INPUT: Properties = {"font_color": "#0000FF", "bg_color": "#FFF9E5"}
MONEY: Properties = {"num_format": "#,##0;(#,##0);-"}
RATE: Properties = {"num_format": "#,##0.00"}
SHARE: Properties = {"num_format": "0.0%"}
DAY: Properties = {"num_format": "d mmm yyyy"}


@dataclass(frozen=True, slots=True)
class Calc:
    """A formula and the value that it has."""

    formula: str
    value: float | str


@dataclass(slots=True)
class Sheet:
    """One sheet: what is written into it stays readable by `at`."""

    book: "Book"
    page: Worksheet
    _values: dict[str, Plain] = field(default_factory=dict[str, Plain])

    def put(self, cell: str, content: Plain | Calc, *styles: Properties) -> None:
        """Write one cell; later styles win over earlier ones."""
        form = self.book.style(*styles)
        if isinstance(content, Calc):
            self.page.write_formula(cell, content.formula, form, content.value)
        elif isinstance(content, date):
            self.page.write_datetime(cell, content, form)
        else:
            self.page.write(cell, content, form)
        if content is not None:
            self._values[cell] = content.value if isinstance(content, Calc) else content

    def row(self, cell: str, contents: Sequence[Plain | Calc], *styles: Properties) -> None:
        """Write cells side by side, the first at `cell`; None leaves its cell empty."""
        row, first = xl_cell_to_rowcol(cell)
        for column, content in enumerate(contents, first):
            if content is not None:
                self.put(f"{xl_col_to_name(column)}{row + 1}", content, *styles)

    def head(self, title: str, cell: str, columns: Sequence[str], widths: Sequence[int]) -> None:
        """The sheet's title in A1, its column heads, and the panes frozen below them."""
        self.put("A1", title, TITLE)
        self.row(cell, columns, HEAD)
        row, first = xl_cell_to_rowcol(cell)
        for column, width in enumerate(widths, first):
            self.page.set_column(column, column, width)
        self.page.freeze_panes(row + 1, first + 1)

    def at(self, cell: str) -> float:
        """The number in a cell that was written before."""
        value = self._values[cell]
        assert isinstance(value, int | float), f"{cell} holds {value!r}"
        return value

    def total(self, cells: str) -> float:
        """The sum of a range of one row or one column, empty cells counting as nothing."""
        first, last = (xl_cell_to_rowcol(end) for end in cells.split(":"))
        names = [
            f"{xl_col_to_name(column)}{row + 1}"
            for row in range(first[0], last[0] + 1)
            for column in range(first[1], last[1] + 1)
        ]
        return sum(self.at(name) for name in names if name in self._values)

    def sum(self, cells: str) -> Calc:
        """`=SUM(cells)` with its value."""
        return Calc(f"=SUM({cells})", self.total(cells))

    def note(self, cell: str, text: str, author: str) -> None:
        """A note on a cell."""
        self.page.write_comment(cell, text, {"author": author, "x_scale": 2})


class Book:
    """A workbook under construction."""

    def __init__(self, target: io.BytesIO, saved: datetime, author: str) -> None:
        self.file = Workbook(target, {"in_memory": True})
        self.file.set_properties({"author": author, "created": saved.replace(tzinfo=None)})
        self._styles: dict[str, Format] = {}
        self._opens = False

    def sheet(self, name: str, *, hidden: bool = False) -> Sheet:
        """A new sheet after the others; a workbook opens at the first that is not hidden."""
        page = self.file.add_worksheet(name)
        if hidden:
            page.hide()
        elif not self._opens:
            self._opens = True
            page.activate()
        return Sheet(self, page)

    def name(self, name: str, target: str) -> None:
        """A name for a range: `name("DayRate", "Rates!$B$4")`."""
        self.file.define_name(name, f"={target}")

    def style(self, *styles: Properties) -> Format:
        """One cell format for equal styles, so that a workbook holds few."""
        merged = {key: value for style in styles for key, value in style.items()}
        key = repr(sorted(merged.items()))
        if key not in self._styles:
            self._styles[key] = self.file.add_format(merged)
        return self._styles[key]


@contextmanager
def book(path: Path, *, saved: datetime, author: str) -> Generator[Book]:
    """A workbook that is written to `path` at the end of the block."""
    buffer = io.BytesIO()
    found = Book(buffer, saved, author)
    yield found
    found.file.close()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(settled(buffer.getvalue(), saved))
