# SPDX-License-Identifier: Apache-2.0
"""Contract hours and leave of the fourth quarter, by practice; by person on a hidden sheet."""

from datetime import UTC, datetime
from pathlib import Path

from facts.firm import HOURS_A_DAY, MONTHS, PRACTICES, WORKING_DAYS, standard_hours
from facts.people import FEE_EARNERS, grade_in, team_of
from facts.utilisation import LEAVE, QUARTER, contract_hours
from forms.workbook import HEAD, INPUT, MONEY, TOTAL, Book, Calc, Sheet, book

SAVED = datetime(2026, 1, 8, 10, 15, tzinfo=UTC)
HOURS = {"num_format": "#,##0.0"}


def write(path: Path) -> None:
    """Write the workbook."""
    with book(path, saved=SAVED, author="Philippa Crane") as found:
        calendar = _calendar(found)
        people = found.sheet("People", hidden=True)
        practices = _practices(found, calendar)
        _quarter(found, practices)
        _people(people)


def _calendar(found: Book) -> Sheet:
    sheet = found.sheet("Working days")
    sheet.head("Working days 2025", "A3", ("Month", "Days", "Contract hours"), (10, 8, 16))
    sheet.row("E3", ("Hours a day", HOURS_A_DAY), HEAD)
    found.name("HoursADay", "'Working days'!$F$3")
    for row, (month, days) in enumerate(zip(MONTHS, WORKING_DAYS, strict=True), 4):
        sheet.row(f"A{row}", (month, days))
        value = standard_hours(row - 3)
        sheet.put(f"C{row}", Calc(f"=B{row}*HoursADay", value), HOURS)
    sheet.put("A16", "Year", TOTAL)
    sheet.put("B16", sheet.sum("B4:B15"), TOTAL)
    sheet.put("C16", sheet.sum("C4:C15"), HOURS, TOTAL)
    return sheet


def _practices(found: Book, calendar: Sheet) -> Sheet:
    sheet = found.sheet("Practices")
    columns = ("Practice", "Month", "Fee earners", "Contract hours", "Leave", "Net of leave")
    sheet.head("Capacity, fourth quarter 2025", "A3", columns, (16, 8, 12, 15, 10, 14))
    rows = [(practice, month) for practice in PRACTICES for month in QUARTER]
    for row, (practice, month) in enumerate(rows, 4):
        heads = len(team_of(practice))
        sheet.row(f"A{row}", (practice, MONTHS[month - 1]))
        count = Calc(f"=COUNTIF(People!$C$4:$C${3 + len(FEE_EARNERS)},A{row})", heads)
        sheet.put(f"C{row}", count)
        hours = heads * calendar.at(f"C{month + 3}")
        sheet.put(f"D{row}", Calc(f"=C{row}*'Working days'!C{month + 3}", hours), HOURS)
        assert hours == contract_hours(practice, month)
        sheet.put(f"E{row}", LEAVE[practice][month], MONEY, INPUT)
        sheet.put(f"F{row}", Calc(f"=D{row}-E{row}", hours - LEAVE[practice][month]), HOURS)
    sheet.note(
        "F3", "Group training is not taken off here: see the approved forms.", "Philippa Crane"
    )
    return sheet


def _quarter(found: Book, practices: Sheet) -> None:
    sheet = found.sheet("Quarter")
    columns = ("Practice", "Contract hours", "Leave", "Net of leave")
    sheet.head("Fourth quarter 2025", "A3", columns, (16, 15, 10, 14))
    for row, practice in enumerate(PRACTICES, 4):
        sheet.put(f"A{row}", practice)
        first = 4 + len(QUARTER) * (row - 4)
        for letter, source in zip("BCD", "DEF", strict=True):
            value = practices.total(f"{source}{first}:{source}{first + 2}")
            formula = f"=SUMIFS(Practices!${source}$4:${source}$15,Practices!$A$4:$A$15,$A{row})"
            sheet.put(f"{letter}{row}", Calc(formula, value), HOURS)
    sheet.put("A8", "All", TOTAL)
    for letter in "BCD":
        sheet.put(f"{letter}8", sheet.sum(f"{letter}4:{letter}7"), HOURS, TOTAL)


def _people(sheet: Sheet) -> None:
    columns = ("Person", "Grade in December", "Practice")
    sheet.head("Fee earners", "A3", columns, (22, 18, 16))
    for row, person in enumerate(FEE_EARNERS.values(), 4):
        sheet.row(f"A{row}", (person.name, grade_in(person.key, 12), person.practice))
