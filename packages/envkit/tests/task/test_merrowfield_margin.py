# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from types import ModuleType

import pytest

from .world_code import world_modules

TASK = "merrowfield-margin"
fees, decoys = world_modules("halden-pryce", ["facts.fees", "facts.decoys"])


@pytest.fixture(scope="module")
def verify(load_verifier: Callable[[str], ModuleType]) -> ModuleType:
    return load_verifier(TASK)


def holds(verify: ModuleType, answer: str) -> set[str]:
    return {name for name, value in verify.judge(answer).items() if value}


def test_the_verifier_knows_the_figures_of_the_facts(verify: ModuleType) -> None:
    assert pytest.approx(float(fees.year_fee("HP-2504"))) == verify.FEES
    assert fees.year_cost("HP-2504") == verify.COST


@pytest.mark.parametrize("text", [
    "Fees: £940,953.42\nStaff cost: £442,746\nMargin: 52.9 %",
    "**Fees:** £940,953\n**Staff cost:** £442,746.00\n**Margin:** 52.95%",
    "- Fees: 940953.4 GBP\n- Staff cost: 442746 GBP\n- Margin: 52.9 percent",
    "| Fees | £940,953.42 |\n|---|---|\n| Staff cost | £442,746.00 |\n| Margin | 52.9 % |",
    "1. Fees (2025): 940 953.42\n2. Staff cost: 442 746\n3. Margin: 52.9",
    "fees = GBP 940,953.42\nstaff cost = GBP 442,746\nmargin = 498,207.42 / 940,953.42 = 52.9 %",
    "Fees: £940,953.42\nStaff cost: £442,746\nMargin: 52.9 %\n\nFees follow card 2025-A up to June "
    "and 2025-B from July.\nMargin without the variation letter would be 55.2 %.",
    "Fees of HP-2504: £940,953.42\nStaff cost £442,746\nMargin **52.9 %**",
    "The figures are:\n\nFees in 2025: £940,953.40 (discount 7.5 %, then 18 %)\n"
    "Staff cost: £442,746 (4,563 hours)\nMargin: 52.9 %, not 55.2 %",
])  # fmt: skip
def test_a_right_answer_counts_however_it_is_written(verify: ModuleType, text: str) -> None:
    assert holds(verify, text) == {"fees", "staff_cost", "margin"}


@pytest.mark.parametrize(("text", "right"), [
    # The status report: no variation letter.
    ("Fees: £988,242\nStaff cost: £442,746\nMargin: 55.2 %", {"staff_cost"}),
    # Card 2025-A all year.
    ("Fees: £913,342.58\nStaff cost: £442,746\nMargin: 51.5 %", {"staff_cost"}),
    # Nadia Petrov a consultant all year.
    ("Fees: £896,174.28\nStaff cost: £419,745\nMargin: 53.2 %", set()),
    # No discount at all.
    ("Fees: £1,068,370\nStaff cost: £442,746\nMargin: 58.6 %", {"staff_cost"}),
    # Cost over fees instead of margin.
    ("Fees: £940,953.42\nStaff cost: £442,746\nMargin: 47.1 %", {"fees", "staff_cost"}),
    ("Fees: £940,953.42\nStaff cost: £442,746\nMargin: 53 %", {"fees", "staff_cost"}),
    ("Fees: £941 thousand\nStaff cost: £443k\nMargin: 0.529", set()),
    ("Fees: £940,953 or £988,242\nStaff cost: £442,746\nMargin: 52.9 % or 55.2 %", {"staff_cost"}),
    ("Margin: 52.9 %\nMargin: 55.2 %", set()),
    ("Fees: -940,953.42\nStaff cost: -442,746\nMargin: -52.9", set()),
    ("940,953.42 442,746 52.9 988,242 55.2", set()),
    ("Fees: 940.953,42\nStaff cost: 442.746\nMargin: 52,9 %", set()),
])  # fmt: skip
def test_a_near_miss_gets_what_it_earned(verify: ModuleType, text: str, right: set[str]) -> None:
    assert holds(verify, text) == right


def test_what_the_status_report_says_earns_the_cost_alone(verify: ModuleType) -> None:
    wrong = decoys.merrowfield_fees()
    text = f"Fees: {wrong}\nStaff cost: {verify.COST}\nMargin: {decoys.merrowfield_margin():.1f}"
    assert holds(verify, text) == {"staff_cost"}
