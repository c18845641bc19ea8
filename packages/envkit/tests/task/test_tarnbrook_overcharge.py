# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from decimal import Decimal
from types import ModuleType

import pytest

from .world_code import world_modules

TASK = "tarnbrook-overcharge"
invoices, hours, rates, fees = world_modules(
    "halden-pryce", ["facts.invoices", "facts.hours", "facts.rates", "facts.fees"]
)


@pytest.fixture(scope="module")
def verify(load_verifier: Callable[[str], ModuleType]) -> ModuleType:
    return load_verifier(TASK)


def holds(verify: ModuleType, answer: str) -> set[str]:
    return {name for name, value in verify.judge(answer).items() if value}


def test_the_verifier_knows_the_overcharge_of_the_facts(verify: ModuleType) -> None:
    ((code, month), extra), *others = invoices.EXTRA_HOURS.items()
    assert others == []
    ((grade, found),) = extra.items()
    assert code == "HP-2501"
    assert invoices.invoice_of(code, month).number == f"INV-2025-{verify.INVOICE}"
    assert (grade.lower(), found) == (verify.GRADE, verify.HOURS)
    assert fees.worth(extra, rates.card_in(month), 80) == Decimal(str(verify.CREDIT))


@pytest.mark.parametrize("text", [
    "Invoice: INV-2025-121\nExcess hours: 14 Consultant\nCredit: £2,447.20",
    "**Invoice:** INV-2025-121 (June)\n**Excess hours:** 14 consultant hours\n**Credit:** £2447.20",
    "| Invoice | inv-2025-121 |\n| Excess hours | 14 (Consultant 149 - 135) Consultant |\n"
    "| Credit | GBP 2,447.20 |",
    "1. Invoice number: INV-2025-121\n2. Excess hours: 149 - 135 = 14 Consultant\n"
    "3. Credit: 14 * 190 * 0.92 = 2,447.20",
    "Invoice: INV-2025-121\nExcess hours: 14 Consultant\nCredit: £2,447.20 after 8 % discount, "
    "without 20 % VAT",
    "Invoice: INV-2025-121, not INV-2025-128\nExcess hours: Consultant, 14\nCredit: 2447.2 pounds",
])  # fmt: skip
def test_a_right_answer_counts_however_it_is_written(verify: ModuleType, text: str) -> None:
    assert holds(verify, text) == {"invoice", "excess_hours", "credit"}


@pytest.mark.parametrize(("text", "right"), [
    # The first review: July, at the wrong card.
    ("Invoice: INV-2025-128\nExcess hours: 0\nCredit: £4,232.00", set()),
    # August, for its expenses.
    ("Invoice: INV-2025-135\nExcess hours: 0\nCredit: £399.57", set()),
    # Without the discount; with value added tax; at the later card.
    ("Invoice: INV-2025-121\nExcess hours: 14 Consultant\nCredit: £2,660.00",
     {"invoice", "excess_hours"}),
    ("Invoice: INV-2025-121\nExcess hours: 14 Consultant\nCredit: £2,936.64",
     {"invoice", "excess_hours"}),
    ("Invoice: INV-2025-121\nExcess hours: 14 Consultant\nCredit: £2,576.00",
     {"invoice", "excess_hours"}),
    ("Invoice: INV-2025-121\nExcess hours: 14 Consultant\nCredit: £2,447",
     {"invoice", "excess_hours"}),
    # Another grade, or none.
    ("Invoice: INV-2025-121\nExcess hours: 14 Manager\nCredit: £3,348.80", set()),
    ("Invoice: INV-2025-121\nExcess hours: 14\nCredit: £2,447.20", {"invoice", "credit"}),
    ("Invoice: INV-2025-121\nExcess hours: 149 Consultant\nCredit: £26,045.20", set()),
    ("Invoice: INV-2025-121\nExcess hours: 14 Consultant or Manager\nCredit: £2,447.20",
     {"invoice", "credit"}),
    # A guess, and a list of all.
    ("Invoice: INV-2025-121", set()),
    ("Invoice: INV-2025-121 or INV-2025-128\nExcess hours: 14 Consultant\nCredit: £2,447.20",
     {"excess_hours", "credit"}),
    ("Invoice: INV-2025-121\nInvoice: INV-2025-128\nCredit: £2,447.20", {"credit"}),
    ("Invoice: 121\nExcess hours: 14 Consultant\nCredit: £2,447.20", {"excess_hours", "credit"}),
    ("INV-2025-121 14 Consultant 2,447.20", set()),
])  # fmt: skip
def test_a_near_miss_gets_what_it_earned(verify: ModuleType, text: str, right: set[str]) -> None:
    assert holds(verify, text) == right
