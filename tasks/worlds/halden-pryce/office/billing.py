# SPDX-License-Identifier: Apache-2.0
"""The billing workbook: every invoice that was sent in 2025, and what is open of it."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from facts.engagements import ENGAGEMENTS, Basis
from facts.firm import MONTHS
from facts.invoices import INVOICES, VAT_PERCENT, Invoice
from forms.workbook import DAY, RATE, SHARE, TOTAL, Book, Calc, Plain, Sheet, book

SAVED = datetime(2026, 1, 5, 9, 40, tzinfo=UTC)
FIRST = 4
LAST = FIRST + len(INVOICES) - 1
COLUMNS = (
    "Invoice", "Engagement", "Month", "Issued", "Fees", "Expenses", "Net", "VAT", "Gross", "Status",
)  # fmt: skip


def write(path: Path) -> None:
    """Write the workbook."""
    with book(path, saved=SAVED, author="Imogen Tate") as found:
        _invoices(found)
        _by_engagement(found)
        _by_month(found)
        settings = found.sheet("Settings", hidden=True)
        settings.row("A1", ("VAT rate", VAT_PERCENT / 100), SHARE)
        found.name("VatRate", "Settings!$B$1")


def column(letter: str) -> str:
    """A column of the invoice list as other sheets refer to it."""
    return f"Invoices!${letter}${FIRST}:${letter}${LAST}"


def _invoices(found: Book) -> None:
    sheet = found.sheet("Invoices")
    widths = (15, 12, 8, 12, 13, 11, 13, 12, 13, 8)
    sheet.head("Invoices for work of 2025 (GBP)", f"A{FIRST - 1}", COLUMNS, widths)
    sheet.put("A2", "January to November. December is invoiced on 15 January 2026.")
    for row, invoice in enumerate(INVOICES, FIRST):
        _invoice(sheet, row, invoice)
    sheet.put(f"A{LAST + 1}", "All", TOTAL)
    for letter in "EFGHI":
        total = sheet.sum(f"{letter}{FIRST}:{letter}{LAST}")
        sheet.put(f"{letter}{LAST + 1}", total, RATE, TOTAL)
    sheet.note("J3", "As of 31 December 2025.", "Imogen Tate")


def _invoice(sheet: Sheet, row: int, invoice: Invoice) -> None:
    sheet.row(f"A{row}", (invoice.number, invoice.code, MONTHS[invoice.month - 1]))
    sheet.put(f"D{row}", invoice.issued, DAY)
    cells: tuple[Plain | Calc, ...] = (
        float(invoice.fees),
        invoice.expenses,
        Calc(f"=E{row}+F{row}", float(invoice.net)),
        Calc(f"=ROUND(G{row}*VatRate,2)", float(invoice.vat)),
        Calc(f"=G{row}+H{row}", float(invoice.gross)),
    )
    sheet.row(f"E{row}", cells, RATE)
    sheet.put(f"J{row}", "open" if invoice.is_open else "paid")


def _by_engagement(found: Book) -> None:
    sheet = found.sheet("By engagement")
    columns = ("Engagement", "Client", "Fees", "Expenses", "Net", "Open, gross", "Cap", "Left")
    widths = (12, 24, 14, 12, 14, 14, 12, 12)
    sheet.head("Invoiced by engagement (GBP)", "A3", columns, widths)
    for row, (code, terms) in enumerate(ENGAGEMENTS.items(), 4):
        of_it = [invoice for invoice in INVOICES if invoice.code == code]
        sheet.row(f"A{row}", (code, terms.client))
        for letter, source in (("C", "E"), ("D", "F")):
            amounts = [invoice.fees if source == "E" else invoice.expenses for invoice in of_it]
            formula = f"=SUMIFS({column(source)},{column('B')},$A{row})"
            sheet.put(f"{letter}{row}", Calc(formula, float(sum(amounts))), RATE)
        net = sheet.at(f"C{row}") + sheet.at(f"D{row}")
        sheet.put(f"E{row}", Calc(f"=C{row}+D{row}", net), RATE)
        still_open = sum((invoice.gross for invoice in of_it if invoice.is_open), Decimal())
        formula = f'=SUMIFS({column("I")},{column("B")},$A{row},{column("J")},"open")'
        sheet.put(f"F{row}", Calc(formula, float(still_open)), RATE)
        if terms.basis is Basis.CAPPED:
            sheet.put(f"G{row}", terms.fee, RATE)
            sheet.put(f"H{row}", Calc(f"=G{row}-C{row}", terms.fee - sheet.at(f"C{row}")), RATE)
    last = 3 + len(ENGAGEMENTS)
    sheet.put(f"A{last + 1}", "All", TOTAL)
    for letter in "CDEF":
        total = sheet.sum(f"{letter}4:{letter}{last}")
        sheet.put(f"{letter}{last + 1}", total, RATE, TOTAL)


def _by_month(found: Book) -> None:
    sheet = found.sheet("By month")
    sheet.head(
        "Invoiced by month (GBP)", "A3", ("Month", "Invoices", "Fees", "Expenses"), (10,) * 4
    )
    for row, month in enumerate(MONTHS[:11], 4):
        of_it = [invoice for invoice in INVOICES if MONTHS[invoice.month - 1] == month]
        sheet.put(f"A{row}", month)
        sheet.put(f"B{row}", Calc(f"=COUNTIF({column('C')},A{row})", len(of_it)))
        fees = float(sum(invoice.fees for invoice in of_it))
        expenses = sum(invoice.expenses for invoice in of_it)
        for letter, source, amount in (("C", "E", fees), ("D", "F", expenses)):
            formula = f"=SUMIFS({column(source)},{column('C')},$A{row})"
            sheet.put(f"{letter}{row}", Calc(formula, amount), RATE)
    sheet.put("A15", "All", TOTAL)
    for letter in "BCD":
        sheet.put(f"{letter}15", sheet.sum(f"{letter}4:{letter}14"), RATE, TOTAL)
