# SPDX-License-Identifier: Apache-2.0
"""What only workbooks and decks show: a proposal that was changed, the plan, the pipeline."""

from decimal import Decimal

from facts.engagements import ENGAGEMENTS
from facts.fees import fee, staff_cost
from facts.hours import by_grade
from facts.people import GRADES

STEERED = "HP-2508"
PROPOSED_HOURS = {"Partner": 240, "Manager": 760, "Consultant": 900, "Analyst": 880}
"""For HP-2508, in its proposal; the engagement letter has other budgets, and ranks first."""

FEE_PLAN = {
    "Strategy": 1_640_000,
    "Operations": 1_750_000,
    "Digital": 1_500_000,
    "Organisation": 1_345_000,
}
"""Planned fees of 2025 by practice of the engagement, approved on 11 February 2025."""

PIPELINE: tuple[tuple[str, str, str, int, int], ...] = (
    ("Tarnbrook Water", "Asset planning", "Operations", 420_000, 60),
    ("Penhallow Insurance", "Broker channel", "Strategy", 310_000, 40),
    ("Brayfield Council", "Library service", "Organisation", 185_000, 75),
    ("Wexcombe Homes", "Land bank review", "Strategy", 260_000, 25),
    ("Skelwith Energy", "Tariff engine", "Digital", 540_000, 30),
    ("Ashdene Trust", "Clinic rota pilot", "Organisation", 140_000, 50),
)
"""Client, title, practice, value in pounds, chance in percent."""


def hours_to(code: str, last: int, first: int = 1) -> dict[str, int]:
    """Hours of the engagement by grade, from the first to the last month, in order of grade."""
    found = dict.fromkeys(GRADES, 0)
    for month in range(first, last + 1):
        for grade, hours in by_grade(code, month).items():
            found[grade] += hours
    return {grade: hours for grade, hours in found.items() if hours}


def practice_fees(practice: str, month: int) -> Decimal:
    """The month's fees of the engagements that the practice leads."""
    codes = [code for code, terms in ENGAGEMENTS.items() if terms.practice == practice]
    return sum((fee(code, month) for code in codes), Decimal())


def practice_cost(practice: str) -> int:
    """Staff cost of 2025 of the engagements that the practice leads."""
    return sum(
        staff_cost(code, month)
        for code, terms in ENGAGEMENTS.items()
        if terms.practice == practice
        for month in range(1, 13)
    )


OPTIONS: tuple[tuple[str, tuple[int, int, int], int, str], ...] = (
    ("Deepen home cover", (4, 9, 13), 6, "Low: known product, known customers"),
    ("Broker channel", (2, 12, 24), 15, "Medium: new partners, shared margin"),
    ("Small firms", (1, 7, 19), 21, "High: new underwriting skills"),
)
"""For HP-2506: option, premium gained in 2026 to 2028, cost (GBP million), risk."""
