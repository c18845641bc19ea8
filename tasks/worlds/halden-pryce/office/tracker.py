# SPDX-License-Identifier: Apache-2.0
"""The budget tracker of HP-2504: hours and staff cost against budget, month by month."""

from datetime import UTC, datetime
from pathlib import Path

from facts.engagements import ENGAGEMENTS
from facts.firm import MONTHS
from facts.hours import by_grade
from facts.people import GRADES
from facts.rates import COST
from forms.workbook import INPUT, MONEY, SHARE, TOTAL, Book, Calc, Sheet, book

CODE = "HP-2504"
SAVED = datetime(2026, 1, 9, 14, 10, tzinfo=UTC)
FIRST_MONTH = ENGAGEMENTS[CODE].months[0]
COLUMNS = "BCDEFGHIJK"
"""A column for each month of work."""


def write(path: Path) -> None:
    """Write the workbook."""
    with book(path, saved=SAVED, author="Leila Haddad") as found:
        rates = found.sheet("Cost rates", hidden=True)
        rates.head("Staff cost (GBP an hour)", "A3", ("Grade", "Cost"), (14, 8))
        for row, grade in enumerate(GRADES, 4):
            rates.row(f"A{row}", (grade, COST[grade]))
        hours = _hours(found)
        cost = _cost(found, hours, rates)
        _against_budget(found, hours, cost, rates)


def _hours(found: Book) -> Sheet:
    sheet = found.sheet("Hours")
    months = MONTHS[FIRST_MONTH - 1 :]
    sheet.head(f"{CODE} hours", "A3", ("Grade", *months, "Total"), (14, *[8] * 11))
    for row, grade in enumerate(GRADES, 4):
        sheet.put(f"A{row}", grade)
        for letter, month in zip(COLUMNS, range(FIRST_MONTH, 13), strict=True):
            sheet.put(f"{letter}{row}", by_grade(CODE, month).get(grade, 0), MONEY, INPUT)
        sheet.put(f"L{row}", sheet.sum(f"B{row}:K{row}"), MONEY)
    _totals(sheet, 9, 4, 8)
    sheet.note("F6", "Nadia Petrov is Manager from 1 July.", "Leila Haddad")
    return sheet


def _cost(found: Book, hours: Sheet, rates: Sheet) -> Sheet:
    sheet = found.sheet("Cost")
    months = MONTHS[FIRST_MONTH - 1 :]
    sheet.head(f"{CODE} staff cost (GBP)", "A3", ("Grade", *months, "Total"), (14, *[10] * 11))
    for row, grade in enumerate(GRADES, 4):
        sheet.put(f"A{row}", grade)
        for letter in COLUMNS:
            value = hours.at(f"{letter}{row}") * rates.at(f"B{row}")
            formula = f"=Hours!{letter}{row}*VLOOKUP($A{row},'Cost rates'!$A$4:$B$8,2,0)"
            sheet.put(f"{letter}{row}", Calc(formula, value), MONEY)
        sheet.put(f"L{row}", sheet.sum(f"B{row}:K{row}"), MONEY)
    _totals(sheet, 9, 4, 8)
    return sheet


def _totals(sheet: Sheet, row: int, first: int, last: int) -> None:
    sheet.put(f"A{row}", "All", TOTAL)
    for letter in (*COLUMNS, "L"):
        sheet.put(f"{letter}{row}", sheet.sum(f"{letter}{first}:{letter}{last}"), MONEY, TOTAL)


def _against_budget(found: Book, hours: Sheet, cost: Sheet, rates: Sheet) -> None:
    sheet = found.sheet("Against budget")
    columns = ("Grade", "Budget hours", "Hours", "Left", "Used", "Budget cost", "Cost")
    sheet.head(f"{CODE} against budget", "A3", columns, (14, *[12] * 6))
    for row, (grade, budget) in enumerate(ENGAGEMENTS[CODE].budget_hours.items(), 4):
        source = 4 + GRADES.index(grade)
        used, rate = hours.at(f"L{source}"), rates.at(f"B{source}")
        sheet.row(f"A{row}", (grade, budget), MONEY)
        sheet.put(f"C{row}", Calc(f"=Hours!L{source}", used), MONEY)
        sheet.put(f"D{row}", Calc(f"=B{row}-C{row}", budget - used), MONEY)
        sheet.put(f"E{row}", Calc(f"=C{row}/B{row}", used / budget), SHARE)
        sheet.put(f"F{row}", Calc(f"=B{row}*'Cost rates'!B{source}", budget * rate), MONEY)
        sheet.put(f"G{row}", Calc(f"=Cost!L{source}", cost.at(f"L{source}")), MONEY)
    sheet.put("A9", "All", TOTAL)
    for letter in "BCDFG":
        sheet.put(f"{letter}9", sheet.sum(f"{letter}4:{letter}8"), MONEY, TOTAL)
    sheet.put("E9", Calc("=C9/B9", sheet.at("C9") / sheet.at("B9")), SHARE, TOTAL)
