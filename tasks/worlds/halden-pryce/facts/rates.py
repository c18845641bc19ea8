# SPDX-License-Identifier: Apache-2.0
"""Rate cards and cost rates: pounds an hour by grade.

Work is charged by the card that is in force in the month in which it is done.
"""

type Card = dict[str, int]

CARD_A: Card = {
    "Partner": 420,
    "Principal": 335,
    "Manager": 260,
    "Consultant": 190,
    "Analyst": 130,
}
"""Card 2025-A, in force 1 January to 30 June 2025."""
CARD_B: Card = {
    "Partner": 440,
    "Principal": 350,
    "Manager": 275,
    "Consultant": 200,
    "Analyst": 135,
}
"""Card 2025-B, in force 1 July to 31 December 2025; replaces 2025-A."""
CARD_2026: Card = {
    "Partner": 455,
    "Principal": 365,
    "Manager": 285,
    "Consultant": 210,
    "Analyst": 140,
}
"""Card 2026-A, in force from 1 January 2026."""
COST: Card = {
    "Partner": 186,
    "Principal": 148,
    "Manager": 112,
    "Consultant": 79,
    "Analyst": 53,
}
"""Staff cost an hour, the same all year 2025."""
FIRST_MONTH_OF_B = 7


def card_in(month: int) -> Card:
    """The rate card in force in the month (1 to 12) of 2025."""
    return CARD_B if month >= FIRST_MONTH_OF_B else CARD_A
