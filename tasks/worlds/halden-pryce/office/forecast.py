# SPDX-License-Identifier: Apache-2.0
"""The forecast of 2026: the extension for Lindale Foods is not priced in it yet."""

from datetime import UTC, datetime
from pathlib import Path

from facts.engagements import ENGAGEMENTS
from facts.outlook import EXPECTED_FEES_2026, EXTENDED, EXTENSION_HOURS
from facts.rates import CARD_B
from forms.workbook import HEAD, INPUT, MONEY, SHARE, TOTAL, Book, Calc, Sheet, book

SAVED = datetime(2025, 12, 17, 15, 30, tzinfo=UTC)
QUARTERS = ("Q1", "Q2", "Q3", "Q4")
PLAN = (900_000, 880_000, 700_000, 560_000)
"""Fees planned for 2026 by quarter, a first number of the Finance Director."""
LOG = (
    ("2025-11-20", "Malcolm Strand", "First version, plan by quarter"),
    ("2025-12-10", "Bea Lockwood", "Other engagements as expected by the partners"),
    ("2025-12-17", "Bea Lockwood", "Sheet Lindale laid out; terms of the extension are open"),
)


def write(path: Path) -> None:
    """Write the workbook."""
    with book(path, saved=SAVED, author="Bea Lockwood") as found:
        rates = _assumptions(found)
        _lindale(found, rates)
        others = _others(found)
        _summary(found, others)
        log = found.sheet("Log", hidden=True)
        log.row("A1", ("Date", "Who", "What"), HEAD)
        for row, entry in enumerate(LOG, 2):
            log.row(f"A{row}", entry)


def _assumptions(found: Book) -> Sheet:
    sheet = found.sheet("Assumptions")
    columns = ("Item", "Value", "Unit", "Source")
    sheet.head("Forecast 2026: assumptions", "A3", columns, (22, 12, 14, 40))
    discount = ENGAGEMENTS[EXTENDED].discount_permille / 1000
    sheet.row("A4", ("Discount HP-2505", None, "share", "engagement letter of 2025"))
    sheet.put("B4", discount, INPUT, SHARE)
    for row, (grade, rate) in enumerate(CARD_B.items(), 5):
        sheet.row(f"A{row}", (f"Rate {grade}", None, "GBP an hour", "rate card 2025-B"))
        sheet.put(f"B{row}", rate, INPUT, MONEY)
    found.name("LindaleDiscount", "Assumptions!$B$4")
    sheet.note("B4", "To be replaced by what is agreed for the extension.", "Bea Lockwood")
    sheet.note("B5", "Work of 2026 is charged by the card of 2026.", "Bea Lockwood")
    return sheet


def _lindale(found: Book, rates: Sheet) -> None:
    sheet = found.sheet("Lindale")
    columns = ("Grade", "Rate", *QUARTERS, "Year")
    sheet.head("HP-2505 Lindale Foods: extension 2026", "A3", columns, (16, *[11] * 6))
    for row, grade in enumerate(EXTENSION_HOURS, 4):
        source = f"B{5 + list(CARD_B).index(grade)}"
        sheet.put(f"A{row}", grade)
        sheet.put(f"B{row}", Calc(f"=Assumptions!{source}", rates.at(source)), MONEY)
        for letter in "CDEF":
            sheet.put(f"{letter}{row}", None, INPUT, MONEY)
        sheet.put(f"G{row}", Calc(f"=SUM(C{row}:F{row})", 0), MONEY)
    for row, label in enumerate(("Hours", "Gross fees", "Discount", "Fees"), 8):
        sheet.put(f"A{row}", label, TOTAL)
    for letter in "CDEFG":
        formulas = (
            f"=SUM({letter}4:{letter}7)",
            f"=SUMPRODUCT($B$4:$B$7,{letter}4:{letter}7)",
            f"=-{letter}9*LindaleDiscount",
            f"={letter}9+{letter}10",
        )
        for row, formula in enumerate(formulas, 8):
            sheet.put(f"{letter}{row}", Calc(formula, 0), MONEY, TOTAL)
    sheet.note("C3", "Hours by grade and quarter, from the extension letter.", "Bea Lockwood")


def _others(found: Book) -> Sheet:
    sheet = found.sheet("Others")
    columns = ("Engagement", "Client", *QUARTERS, "Year")
    sheet.head("Other engagements: expected fees (GBP)", "A3", columns, (12, 24, *[11] * 5))
    for row, (code, fees) in enumerate(EXPECTED_FEES_2026.items(), 4):
        sheet.row(f"A{row}", (code, ENGAGEMENTS[code].client))
        sheet.row(f"C{row}", fees, MONEY)
        sheet.put(f"G{row}", sheet.sum(f"C{row}:F{row}"), MONEY)
    sheet.put("A9", "All", TOTAL)
    for letter in "CDEFG":
        sheet.put(f"{letter}9", sheet.sum(f"{letter}4:{letter}8"), MONEY, TOTAL)
    return sheet


def _summary(found: Book, others: Sheet) -> None:
    sheet = found.sheet("Summary")
    sheet.head("Forecast 2026: fees (GBP)", "A3", ("", *QUARTERS, "Year"), (30, *[12] * 5))
    sheet.row("A4", (f"{EXTENDED} {ENGAGEMENTS[EXTENDED].client}",))
    for letter in "BCDE":
        sheet.put(f"{letter}4", None, MONEY)
    sheet.put("F4", Calc("=SUM(B4:E4)", 0), MONEY)
    for row, code in enumerate(EXPECTED_FEES_2026, 5):
        sheet.put(f"A{row}", f"{code} {ENGAGEMENTS[code].client}")
        for letter, source in zip("BCDEF", "CDEFG", strict=True):
            value = others.at(f"{source}{row - 1}")
            sheet.put(f"{letter}{row}", Calc(f"=Others!{source}{row - 1}", value), MONEY)
    for row, label in ((10, "Total"), (11, "Plan"), (12, "Above or below plan")):
        sheet.put(f"A{row}", label, TOTAL)
    sheet.row("B11", PLAN, MONEY)
    sheet.put("F11", sheet.sum("B11:E11"), MONEY)
    for letter in "BCDEF":
        sheet.put(f"{letter}10", sheet.sum(f"{letter}4:{letter}9"), MONEY, TOTAL)
        gap = sheet.at(f"{letter}10") - sheet.at(f"{letter}11")
        sheet.put(f"{letter}12", Calc(f"={letter}10-{letter}11", gap), MONEY, TOTAL)
    sheet.note("A4", "Empty until sheet Lindale is filled in: link, do not type.", "Bea Lockwood")
