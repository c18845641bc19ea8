# SPDX-License-Identifier: Apache-2.0
"""Six invoices to one client, and a first review of them that was wrong."""

from pathlib import Path

from facts.decoys import tarnbrook_july
from facts.engagements import ENGAGEMENTS
from facts.firm import FIRM, MONTHS
from facts.invoices import VAT_PERCENT, Invoice, invoice_of
from facts.people import name_of

from paper.sheet import body, gap, heading, letterhead, one_column
from paper.tables import borderless, day, percent, pounds, ruled

CODE, FILED_MONTHS = "HP-2501", range(4, 10)


def write(drive: Path) -> None:
    """Write invoices and review below the drive."""
    folder = drive / "Finance/Invoices"
    for month in FILED_MONTHS:
        invoice = invoice_of(CODE, month)
        _invoice(folder / f"{invoice.number}.pdf", invoice)
    _review(folder / "invoice_review_first_pass.pdf")


def _invoice(path: Path, invoice: Invoice) -> None:
    engagement = ENGAGEMENTS[invoice.code]
    parts = [
        *letterhead(),
        heading(f"Invoice {invoice.number}"),
        body(
            f"{engagement.client}, {engagement.title} ({invoice.code})<br/>"
            f"Work of {MONTHS[invoice.month - 1]} 2025. Issued on {day(invoice.issued)}, due "
            "within 30 days."
        ),
        ruled(_lines(invoice)),
        gap(),
        borderless(_totals(invoice)),
    ]
    one_column(path, f"Invoice {invoice.number}", parts)


def _lines(invoice: Invoice) -> list[list[str]]:
    header = ["Grade", "Hours", "Rate", "Amount"]
    lines = [
        [line.grade, f"{line.hours:,}", f"{line.rate:,}", pounds(line.hours * line.rate)]
        for line in invoice.lines
    ]
    return [header, *lines]


def _totals(invoice: Invoice) -> list[list[str]]:
    gross = sum(line.hours * line.rate for line in invoice.lines)
    return [
        ["GBP", ""],
        ["Time", pounds(gross)],
        [f"Discount {percent(invoice.discount_permille)}", f"-{pounds(gross - invoice.fees)}"],
        ["Fees", pounds(invoice.fees)],
        ["Expenses", pounds(invoice.expenses)],
        ["Net", pounds(invoice.net)],
        [f"Value added tax {VAT_PERCENT} %", pounds(invoice.vat)],
        ["To pay", pounds(invoice.gross)],
    ]


def _review(path: Path) -> None:
    july = invoice_of(CODE, 7)
    august = invoice_of(CODE, 8)
    share = float(100 * august.expenses / august.fees)
    parts = [
        heading("Invoice review, first pass: Tarnbrook Water"),
        body(f"{FIRM}, Billing. {name_of('imogen.tate')}, 14 October 2025. Working paper."),
        body(
            f"Of the six invoices for April to September, {july.number} (July) is too high. Its "
            "rates are above those of card 2025-A, which was in force when the letter was signed. "
            f"At card 2025-A its fees would be lower by {pounds(tarnbrook_july())} pounds. A "
            f"credit note of {pounds(tarnbrook_july())} pounds is proposed."
        ),
        body(
            f"{august.number} (August) carries expenses of {share:.1f} % of its fees, above the 5 "
            "% of note FP-07. To be looked at."
        ),
        body("Hours were not compared with the ledger, which was open at the time."),
    ]
    one_column(path, "Invoice review, first pass", parts)
