# SPDX-License-Identifier: Apache-2.0
"""Hours as they were known on the cut-off day: December is not complete in here."""

from datetime import UTC, datetime
from pathlib import Path

from facts.engagements import ENGAGEMENTS
from facts.firm import MONTHS
from facts.hours import HOURS, preliminary
from facts.people import GRADES, grade_in, name_of
from forms.workbook import HEAD, MONEY, TOTAL, Book, Calc, Sheet, book

SAVED = datetime(2025, 12, 19, 17, 5, tzinfo=UTC)
FIRST = 5
MONTH_COLUMNS = "DEFGHIJKLMNO"


def write(path: Path) -> None:
    """Write the workbook."""
    with book(path, saved=SAVED, author="Dev Mistry") as found:
        hours = _hours(found)
        _by_grade(found, hours)
        log = found.sheet("Import log", hidden=True)
        log.row("A1", ("Taken", "Rows", "Remark"), HEAD)
        rows = sum(len(team) for team in HOURS.values())
        log.row("A2", ("2025-11-28 18:00", rows, "complete"))
        log.row("A3", ("2025-12-19 17:00", rows, "timesheets for December still come in"))


def _rows() -> list[tuple[str, str, str, tuple[int, ...]]]:
    """Engagement, person, grade, twelve months; a promoted person has a row for each grade."""
    found: list[tuple[str, str, str, tuple[int, ...]]] = []
    for code, team in HOURS.items():
        for person in team:
            known = [preliminary(code, person, month) for month in range(1, 13)]
            for grade in GRADES:
                at_grade = [grade_in(person, month) == grade for month in range(1, 13)]
                hours = tuple(h if held else 0 for h, held in zip(known, at_grade, strict=True))
                if any(hours):
                    found.append((code, name_of(person), grade, hours))
    return found


ROWS = _rows()
LAST = FIRST + len(ROWS) - 1


def _hours(found: Book) -> Sheet:
    sheet = found.sheet("Hours")
    columns = ("Engagement", "Person", "Grade", *MONTHS, "Total")
    widths = (12, 20, 12, *[6] * 12, 8)
    sheet.head("Hours on engagements, 2025", f"A{FIRST - 1}", columns, widths)
    sheet.put("A2", "Preliminary: taken on 19 December 2025, 17:00. The ledger closes in January.")
    for row, (code, person, grade, hours) in enumerate(ROWS, FIRST):
        sheet.row(f"A{row}", (code, person, grade))
        sheet.row(f"D{row}", hours, MONEY)
        sheet.put(f"P{row}", sheet.sum(f"D{row}:O{row}"), MONEY)
    sheet.put(f"A{LAST + 1}", "All", TOTAL)
    for letter in (*MONTH_COLUMNS, "P"):
        total = sheet.sum(f"{letter}{FIRST}:{letter}{LAST}")
        sheet.put(f"{letter}{LAST + 1}", total, MONEY, TOTAL)
    sheet.note("O4", "Not complete. Do not invoice from this column.", "Dev Mistry")
    return sheet


def _by_grade(found: Book, hours: Sheet) -> None:
    sheet = found.sheet("By grade")
    columns = ("Engagement", "Client", *GRADES, "Total")
    sheet.head("Hours by grade, January to December", "A3", columns, (12, 24, *[11] * 6))
    codes, grades, totals = (f"Hours!${x}${FIRST}:${x}${LAST}" for x in "ACP")
    for row, (code, terms) in enumerate(ENGAGEMENTS.items(), 4):
        sheet.row(f"A{row}", (code, terms.client))
        for letter, grade in zip("CDEFG", GRADES, strict=True):
            amount = sum(sum(found[3]) for found in ROWS if found[0] == code and found[2] == grade)
            formula = f"=SUMIFS({totals},{codes},$A{row},{grades},{letter}$3)"
            sheet.put(f"{letter}{row}", Calc(formula, amount), MONEY)
        sheet.put(f"H{row}", sheet.sum(f"C{row}:G{row}"), MONEY)
    last = 3 + len(ENGAGEMENTS)
    sheet.put(f"A{last + 1}", "All", TOTAL)
    for letter in "CDEFGH":
        sheet.put(f"{letter}{last + 1}", sheet.sum(f"{letter}4:{letter}{last}"), MONEY, TOTAL)
    assert sheet.at(f"H{last + 1}") == hours.at(f"P{LAST + 1}")
