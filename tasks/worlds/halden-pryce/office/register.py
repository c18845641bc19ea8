# SPDX-License-Identifier: Apache-2.0
"""The engagement register: terms as the engagement letters have them, without later changes."""

from datetime import UTC, datetime
from pathlib import Path

from facts.engagements import ENGAGEMENTS, Basis
from facts.firm import MONTHS, PRACTICES
from facts.people import name_of
from forms.workbook import DAY, HEAD, MONEY, SHARE, TITLE, TOTAL, Book, Calc, Sheet, book

SAVED = datetime(2025, 12, 3, 16, 20, tzinfo=UTC)
FIRST = 4
LAST = FIRST + len(ENGAGEMENTS) - 1
COLUMNS = (
    "Engagement", "Client", "Title", "Practice", "Partner", "Manager", "Basis", "Discount",
    "Fee or cap (GBP)", "First month", "Last month", "Expense limit",
)  # fmt: skip


def write(path: Path) -> None:
    """Write the workbook."""
    with book(path, saved=SAVED, author="Bea Lockwood") as found:
        register = _register(found)
        _instalments(found, register)
        _by_practice(found, register)
        _lists(found)


def _register(found: Book) -> Sheet:
    sheet = found.sheet("Register")
    widths = (12, 24, 24, 14, 18, 18, 26, 10, 14, 11, 11, 10)
    sheet.head("Engagement register 2025", f"A{FIRST - 1}", COLUMNS, widths)
    sheet.put("A2", "Terms as in the engagement letters.")
    for row, (code, terms) in enumerate(ENGAGEMENTS.items(), FIRST):
        names = name_of(terms.partner), name_of(terms.manager)
        texts = (code, terms.client, terms.title, terms.practice, *names, str(terms.basis))
        sheet.row(f"A{row}", texts)
        sheet.put(f"H{row}", terms.discount_permille / 1000, SHARE)
        sheet.put(f"I{row}", terms.fee or None, MONEY)
        first, last = terms.months
        sheet.row(f"J{row}", (MONTHS[first - 1], MONTHS[last - 1]))
        sheet.put(f"L{row}", terms.expense_limit_permille / 1000, SHARE)
    note = "Off the rate card. Variation letters are filed with the engagement, not here."
    sheet.note("H3", note, "Bea Lockwood")
    sheet.note("I3", "Without value added tax. For capped work the most we may charge.", "Billing")
    return sheet


def _instalments(found: Book, register: Sheet) -> None:
    sheet = found.sheet("Instalments")
    columns = ("Engagement", *MONTHS, "Year")
    sheet.head("Instalments of fixed fees (GBP)", "A3", columns, (12, *[10] * 13))
    fixed = [code for code, terms in ENGAGEMENTS.items() if terms.basis is Basis.FIXED]
    for row, code in enumerate(fixed, 4):
        sheet.put(f"A{row}", code)
        source = FIRST + list(ENGAGEMENTS).index(code)
        for month, percent in ENGAGEMENTS[code].instalments.items():
            amount = register.at(f"I{source}") * percent / 100
            formula = Calc(f"=Register!$I${source}*{percent}%", amount)
            sheet.put(f"{'ABCDEFGHIJKLM'[month]}{row}", formula, MONEY)
        sheet.put(f"N{row}", sheet.sum(f"B{row}:M{row}"), MONEY)
    last = 3 + len(fixed)
    sheet.put(f"A{last + 1}", "All", TOTAL)
    for column in "BCDEFGHIJKLMN":
        sheet.put(f"{column}{last + 1}", sheet.sum(f"{column}4:{column}{last}"), MONEY, TOTAL)


def _by_practice(found: Book, register: Sheet) -> None:
    sheet = found.sheet("By practice")
    sheet.head(
        "Engagements by practice", "A3", ("Practice", "Number", "Fees and caps"), (16, 10, 16)
    )
    names = f"Register!$D${FIRST}:$D${LAST}"
    amounts = f"Register!$I${FIRST}:$I${LAST}"
    for row, practice in enumerate(PRACTICES, 4):
        of_it = [terms for terms in ENGAGEMENTS.values() if terms.practice == practice]
        sheet.put(f"A{row}", practice)
        sheet.put(f"B{row}", Calc(f"=COUNTIF({names},A{row})", len(of_it)))
        fees = sum(terms.fee for terms in of_it)
        sheet.put(f"C{row}", Calc(f"=SUMIFS({amounts},{names},A{row})", fees), MONEY)
    sheet.put("A8", "All", TOTAL)
    sheet.put("B8", sheet.sum("B4:B7"), TOTAL)
    sheet.put("C8", sheet.sum("C4:C7"), TOTAL, MONEY)


def _lists(found: Book) -> None:
    sheet = found.sheet("Lists", hidden=True)
    sheet.put("A1", "Basis", HEAD)
    for row, basis in enumerate(Basis, 2):
        sheet.put(f"A{row}", str(basis))
    sheet.put("C1", "Last reviewed", TITLE)
    sheet.put("C2", SAVED.date(), DAY)
