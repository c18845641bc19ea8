# SPDX-License-Identifier: Apache-2.0
"""What hours are worth and cost: pounds, exact to the penny."""

from decimal import ROUND_HALF_UP, Decimal

from facts.engagements import ENGAGEMENTS, Basis, discount_in
from facts.hours import by_grade
from facts.rates import COST, card_in

PENNY = Decimal("0.01")


def pence(amount: Decimal) -> Decimal:
    """The amount to the penny, halves up."""
    return amount.quantize(PENNY, rounding=ROUND_HALF_UP)


def worth(hours: dict[str, int], rates: dict[str, int], discount_permille: int) -> Decimal:
    """Hours by grade at these rates less the discount, to the penny."""
    gross = sum((Decimal(found * rates[grade]) for grade, found in hours.items()), Decimal())
    return pence(gross * (1000 - discount_permille) / 1000)


def time_fee(code: str, month: int) -> Decimal:
    """The month's hours at the card in force less the discount that holds then."""
    return worth(by_grade(code, month), card_in(month), discount_in(code, month))


def fee(code: str, month: int) -> Decimal:
    """What the engagement may be charged for the month: time, time up to a cap, or instalment."""
    terms = ENGAGEMENTS[code]
    if terms.basis is Basis.FIXED:
        return pence(Decimal(terms.fee) * terms.instalments.get(month, 0) / 100)
    if terms.basis is Basis.CAPPED:
        before = sum((time_fee(code, earlier) for earlier in range(1, month)), Decimal())
        return min(time_fee(code, month), max(Decimal(), Decimal(terms.fee) - before))
    return time_fee(code, month)


def year_fee(code: str) -> Decimal:
    """The engagement's fees of 2025."""
    return sum((fee(code, month) for month in range(1, 13)), Decimal())


def staff_cost(code: str, month: int) -> int:
    """The month's hours at cost rates."""
    return sum(hours * COST[grade] for grade, hours in by_grade(code, month).items())


def year_cost(code: str) -> int:
    """The engagement's staff cost of 2025."""
    return sum(staff_cost(code, month) for month in range(1, 13))
