# SPDX-License-Identifier: Apache-2.0
"""Invoices for January to November 2025, as they were sent; December is invoiced on 15 January.

Time is invoiced on the 8th of the next month, an instalment likewise. Numbers run by date and
then by engagement. One invoice charges hours that nobody worked: `EXTRA_HOURS`.
"""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from facts.engagements import ENGAGEMENTS, Basis, discount_in
from facts.fees import fee, pence, worth
from facts.firm import Months
from facts.hours import by_grade
from facts.rates import card_in

VAT_PERCENT = 20
EXTRA_HOURS: dict[tuple[str, int], dict[str, int]] = {("HP-2501", 6): {"Consultant": 14}}
"""Hours on an invoice that the ledger does not have: the one overcharge of the year."""

EXPENSES: dict[str, Months] = {
    "HP-2501": (0, 0, 0, 2415, 3120, 3864, 3380, 3790, 4055, 4190, 3725, 0),
    "HP-2502": (0, 0, 1890, 0, 3240, 0, 2115, 0, 0, 0, 0, 0),
    "HP-2503": (1210, 980, 1045, 1120, 990, 1085, 1260, 870, 1190, 1155, 1040, 0),
    "HP-2504": (0, 0, 1480, 2260, 2395, 2180, 2710, 1935, 2640, 2585, 2210, 0),
    "HP-2505": (0, 0, 0, 0, 0, 1875, 3340, 2610, 3115, 3290, 2480, 0),
    "HP-2506": (0, 0, 0, 0, 0, 0, 0, 940, 1815, 1760, 1390, 0),
    "HP-2507": (0, 0, 4180, 0, 0, 4365, 0, 0, 4240, 0, 0, 0),
    "HP-2508": (0, 0, 0, 0, 1120, 1735, 2090, 1480, 1865, 1940, 1610, 0),
    "HP-2509": (0, 0, 0, 0, 3905, 0, 0, 4470, 0, 0, 3380, 0),
    "HP-2510": (1640, 1385, 1420, 1395, 1460, 1405, 1720, 1150, 1590, 1675, 1310, 0),
}
"""Travel and subsistence charged on at cost, without value added tax."""

UNPAID = {
    ("HP-2503", 9),
    ("HP-2503", 10),
    ("HP-2509", 8),
    ("HP-2510", 10),
    ("HP-2504", 10),
}
"""Invoices of October 2025 or earlier work that are open on 31 December; November's are all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Hours of one grade on an invoice."""

    grade: str
    hours: int
    rate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoice:
    """One invoice: amounts in pounds, without value added tax where not said otherwise."""

    number: str
    code: str
    month: int
    issued: date
    lines: tuple[Line, ...]
    """Empty for an instalment of a fixed fee."""
    discount_permille: int
    fees: Decimal
    expenses: int

    @property
    def net(self) -> Decimal:
        """Fees and expenses."""
        return self.fees + self.expenses

    @property
    def vat(self) -> Decimal:
        """Value added tax."""
        return pence(self.net * VAT_PERCENT / 100)

    @property
    def gross(self) -> Decimal:
        """What the client pays."""
        return self.net + self.vat

    @property
    def is_open(self) -> bool:
        """Whether it is unpaid on 31 December 2025."""
        return self.month == 11 or (self.code, self.month) in UNPAID


def _charged(code: str, month: int) -> dict[str, int]:
    hours = by_grade(code, month)
    for grade, extra in EXTRA_HOURS.get((code, month), {}).items():
        hours[grade] += extra
    return hours


def _lines(code: str, month: int) -> tuple[Line, ...]:
    card, hours = card_in(month), _charged(code, month)
    return tuple(
        Line(grade=grade, hours=hours[grade], rate=rate)
        for grade, rate in card.items()
        if grade in hours
    )


def _invoice(number: str, code: str, month: int) -> Invoice:
    by_time = ENGAGEMENTS[code].basis is not Basis.FIXED
    discount = discount_in(code, month)
    charged = worth(_charged(code, month), card_in(month), discount) if by_time else None
    return Invoice(
        number=number,
        code=code,
        month=month,
        issued=date(2025, month + 1, 8),
        lines=_lines(code, month) if by_time else (),
        discount_permille=discount,
        fees=fee(code, month) if charged is None else charged,
        expenses=EXPENSES[code][month - 1],
    )


def _all() -> tuple[Invoice, ...]:
    due = [(month, code) for month in range(1, 12) for code in ENGAGEMENTS if fee(code, month)]
    return tuple(
        _invoice(f"INV-2025-{number}", code, month) for number, (month, code) in enumerate(due, 101)
    )


INVOICES = _all()


def invoice_of(code: str, month: int) -> Invoice:
    """The engagement's invoice for work of the month."""
    (found,) = [each for each in INVOICES if (each.code, each.month) == (code, month)]
    return found
