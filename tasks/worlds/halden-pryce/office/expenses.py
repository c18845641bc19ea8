# SPDX-License-Identifier: Apache-2.0
"""Expense claims of 2025, and what share of the invoiced fees they are."""

from datetime import UTC, date, datetime
from pathlib import Path

from facts.engagements import ENGAGEMENTS
from facts.firm import MONTHS
from facts.hours import HOURS
from facts.invoices import EXPENSES, INVOICES
from facts.people import name_of
from forms.workbook import DAY, MONEY, RATE, SHARE, TOTAL, Book, Calc, book

SAVED = datetime(2026, 1, 6, 11, 25, tzinfo=UTC)
KINDS = (("Rail", 45), ("Hotel", 35), ("Subsistence", 20))
"""Kinds of claim and their percent of a month's expenses."""


def _claims() -> list[tuple[date, str, str, str, str, int]]:
    """Day, engagement, month charged, person, kind, amount; they add up to `EXPENSES`."""
    found: list[tuple[date, str, str, str, str, int]] = []
    for month in range(1, 12):
        for place, (code, months) in enumerate(EXPENSES.items()):
            amount = months[month - 1]
            if not amount:
                continue
            team = [person for person, hours in HOURS[code].items() if hours[month - 1]]
            parts = [amount * percent // 100 for _, percent in KINDS[1:]]
            for number, ((kind, _), part) in enumerate(
                zip(KINDS, (amount - sum(parts), *parts), strict=True)
            ):
                day = date(2025, month, 5 + 7 * number + place % 6)
                person = name_of(team[(month + number) % len(team)])
                found.append((day, code, MONTHS[month - 1], person, kind, part))
    return sorted(found)


CLAIMS = _claims()
FIRST = 4
LAST = FIRST + len(CLAIMS) - 1


def write(path: Path) -> None:
    """Write the workbook."""
    with book(path, saved=SAVED, author="Bea Lockwood") as found:
        _list(found)
        _by_month(found)
        _limits(found)


def _list(found: Book) -> None:
    sheet = found.sheet("Claims")
    columns = ("Date", "Engagement", "Charged with", "Person", "Kind", "Amount")
    sheet.head(
        "Expense claims charged on (GBP)", f"A{FIRST - 1}", columns, (12, 12, 13, 20, 14, 10)
    )
    for row, (day, *texts, amount) in enumerate(CLAIMS, FIRST):
        sheet.put(f"A{row}", day, DAY)
        sheet.row(f"B{row}", texts)
        sheet.put(f"F{row}", amount, MONEY)
    sheet.put(f"A{LAST + 1}", "All", TOTAL)
    sheet.put(f"F{LAST + 1}", sheet.sum(f"F{FIRST}:F{LAST}"), MONEY, TOTAL)
    sheet.note("C3", "The month of the invoice that the claim is charged with.", "Bea Lockwood")


def _by_month(found: Book) -> None:
    sheet = found.sheet("By month")
    sheet.head(
        "Expenses by engagement and month", "A3", ("Engagement", *MONTHS, "Year"), (12, *[8] * 13)
    )
    amounts, codes, months = (f"Claims!${x}${FIRST}:${x}${LAST}" for x in "FBC")
    for row, (code, charged) in enumerate(EXPENSES.items(), 4):
        sheet.put(f"A{row}", code)
        for letter, amount in zip("BCDEFGHIJKLM", charged, strict=True):
            formula = f"=SUMIFS({amounts},{codes},$A{row},{months},{letter}$3)"
            sheet.put(f"{letter}{row}", Calc(formula, amount), MONEY)
        sheet.put(f"N{row}", sheet.sum(f"B{row}:M{row}"), MONEY)
    sheet.put("A14", "All", TOTAL)
    for letter in "BCDEFGHIJKLMN":
        sheet.put(f"{letter}14", sheet.sum(f"{letter}4:{letter}13"), MONEY, TOTAL)


def _limits(found: Book) -> None:
    sheet = found.sheet("Against limits", hidden=True)
    columns = ("Engagement", "Expenses", "Invoiced fees", "Share", "Limit", "Within")
    sheet.head("Expenses against the limits of the letters", "A3", columns, (12, *[14] * 5))
    for row, (code, charged) in enumerate(EXPENSES.items(), 4):
        fees = float(sum(invoice.fees for invoice in INVOICES if invoice.code == code))
        limit = ENGAGEMENTS[code].expense_limit_permille / 1000
        sheet.put(f"A{row}", code)
        sheet.put(f"B{row}", Calc(f"='By month'!N{row}", sum(charged)), MONEY)
        sheet.put(f"C{row}", fees, RATE)
        sheet.put(f"D{row}", Calc(f"=B{row}/C{row}", sum(charged) / fees), SHARE)
        sheet.put(f"E{row}", limit, SHARE)
        within = "yes" if sum(charged) / fees <= limit else "no"
        sheet.put(f"F{row}", Calc(f'=IF(D{row}<=E{row},"yes","no")', within))
