# SPDX-License-Identifier: Apache-2.0
"""What a workbook holds, as plain data that two workbooks can be compared by.

Formulas are read as text: no cached value is used, since the usual libraries drop them. A file
that is no workbook, or one made to exhaust its reader, is `Unreadable`.
"""

import warnings
import zipfile
from pathlib import Path
from typing import Any

from openpyxl import Workbook, load_workbook
from openpyxl.cell import Cell
from openpyxl.worksheet.formula import ArrayFormula
from openpyxl.worksheet.worksheet import Worksheet

MAX_FILE_BYTES = 2 * 1024 * 1024
MAX_UNPACKED_BYTES = 10 * 1024 * 1024
"""A hundred times the budget; openpyxl needs about fifty times this in memory."""
MAX_CELLS = 100_000

type Snapshot = dict[str, Any]


class Unreadable(Exception):
    """The file cannot be read as a workbook of a reasonable size."""


def snapshot(path: Path) -> Snapshot:
    """Sheets, cells and names of the workbook at `path`; raises `Unreadable`."""
    _check_size(path)
    try:
        with warnings.catch_warnings(action="ignore"):
            return take(load_workbook(path))
    except (MemoryError, Unreadable):
        raise
    except Exception as cause:  # openpyxl raises anything on a hostile file
        raise Unreadable(f"{type(cause).__name__}: {cause}") from cause


def _check_size(path: Path) -> None:
    if not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
        raise Unreadable("no file of a reasonable size")
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as cause:
        raise Unreadable(str(cause)) from cause
    if unpacked > MAX_UNPACKED_BYTES:
        raise Unreadable("unpacks to more than it should")


def take(book: Workbook) -> Snapshot:
    """The snapshot of an open workbook."""
    return {
        "order": list(book.sheetnames),
        "sheets": {sheet.title: _sheet(sheet) for sheet in book.worksheets},
        "names": {name: found.attr_text for name, found in book.defined_names.items()},
    }


def _sheet(sheet: Worksheet) -> Snapshot:
    if sheet.max_row * sheet.max_column > MAX_CELLS:
        raise Unreadable(f"{sheet.title} spans more cells than it should")
    cells = [cell for row in sheet.iter_rows() for cell in row if cell.value is not None]
    return {
        "cells": {cell.coordinate: _cell(cell) for cell in cells},
        "merged": sorted(str(merged) for merged in sheet.merged_cells.ranges),
        "freeze": sheet.freeze_panes,
        "validations": sorted(
            f"{rule.sqref} {rule.type} {rule.operator} {rule.formula1} {rule.formula2}"
            for rule in sheet.data_validations.dataValidation
        ),
    }


def _cell(cell: Cell) -> list[object]:
    return [_plain(cell.value), str(cell.number_format), bool(cell.font.b)]


def _plain(value: object) -> object:
    if isinstance(value, ArrayFormula):
        return str(value.text)
    return value if isinstance(value, bool | int | float | str) else str(value)


def value(found: Snapshot, sheet: str, cell: str) -> object:
    """The cell's value or formula text; None where it is empty or its sheet is gone."""
    return found["sheets"].get(sheet, {"cells": {}})["cells"].get(cell, [None])[0]


def is_formula(content: object) -> bool:
    """Whether a cell's content is a formula."""
    return isinstance(content, str) and content.startswith("=")


def number(content: object) -> float | None:
    """The content as a number; None for text, formulas, booleans and what no double holds."""
    if isinstance(content, bool) or not isinstance(content, int | float):
        return None
    try:
        return float(content)
    except OverflowError:
        return None
