# SPDX-License-Identifier: Apache-2.0
"""Management accounts by practice, and the invoices that are unpaid at the end of the year."""

from datetime import date
from decimal import Decimal
from pathlib import Path

from facts.engagements import ENGAGEMENTS
from facts.fees import year_cost, year_fee
from facts.firm import FIRM, PRACTICES
from facts.invoices import INVOICES, Invoice

from paper.sheet import body, gap, heading, one_column
from paper.tables import borderless, day, pounds, ruled, whole

YEAR_END = date(2025, 12, 31)


def write(drive: Path) -> None:
    """Write both below the drive."""
    _accounts(drive / "Finance/management_accounts_2025.pdf")
    _debtors(drive / "Finance/aged_debtors_2025-12.pdf")


def _accounts(path: Path) -> None:
    header = ["GBP", *PRACTICES, "Firm"]
    fees = [_sum(practice, year_fee) for practice in PRACTICES]
    costs = [_sum(practice, year_cost) for practice in PRACTICES]
    rows = [
        _row("Fees earned", fees),
        _row("Staff cost of engagements", costs),
        _row("Contribution", [fee - cost for fee, cost in zip(fees, costs, strict=True)]),
    ]
    parts = [
        heading("Management accounts 2025"),
        body(f"{FIRM}, Finance. 12 January 2026, from the closed hours ledger. Not audited."),
        ruled([header, *rows]),
        gap(),
        body(
            "Fees are those of the work of the year by the terms of each engagement, invoiced or "
            "not, an instalment in the month in which it falls due. Expenses charged on are left "
            "out."
        ),
    ]
    one_column(path, "Management accounts 2025", parts)


def _sum(practice: str, measure) -> Decimal:
    codes = [code for code, terms in ENGAGEMENTS.items() if terms.practice == practice]
    return sum((Decimal(measure(code)) for code in codes), Decimal())


def _row(label: str, amounts: list[Decimal]) -> list[str]:
    return [label, *map(whole, amounts), whole(sum(amounts))]


def _debtors(path: Path) -> None:
    header = ["Invoice", "Client", "Issued", "Days", "GBP with VAT"]
    unpaid = [invoice for invoice in INVOICES if invoice.is_open]
    total = pounds(sum((invoice.gross for invoice in unpaid), Decimal()))
    parts = [
        heading("Aged debtors, 31 December 2025"),
        body(f"{FIRM}, Finance."),
        borderless([header, *map(_debt, unpaid), ["All", "", "", "", total]], text_columns=3),
    ]
    one_column(path, "Aged debtors, 31 December 2025", parts)


def _debt(invoice: Invoice) -> list[str]:
    days = (YEAR_END - invoice.issued).days
    client = ENGAGEMENTS[invoice.code].client
    return [invoice.number, client, day(invoice.issued), str(days), pounds(invoice.gross)]
