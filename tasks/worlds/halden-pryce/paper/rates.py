# SPDX-License-Identifier: Apache-2.0
"""Rate cards in ruled tables, cost rates in a borderless one."""

from pathlib import Path

from facts.firm import FIRM
from facts.rates import CARD_2026, CARD_A, CARD_B, COST, Card

from paper.sheet import body, gap, heading, one_column
from paper.tables import borderless, ruled

_CARDS = (
    ("2025-A", CARD_A, "In force from 1 January 2025."),
    ("2025-B", CARD_B, "In force from 1 July 2025. Replaces card 2025-A for work from that day."),
    (
        "2026-A",
        CARD_2026,
        "In force from 1 January 2026. Replaces card 2025-B for work from that day.",
    ),
)


def write(drive: Path) -> None:
    """Write the cards below the drive."""
    for name, card, force in _CARDS:
        _card(drive / f"Rates/rate_card_{name}.pdf", name, card, force)
    _cost(drive / "Rates/cost_rates_2025.pdf")


def _card(path: Path, name: str, card: Card, force: str) -> None:
    header = ["Grade", "GBP an hour", "GBP a day of 7.5 hours"]
    rows = [[grade, f"{rate:,}", f"{rate * 7.5:,.2f}"] for grade, rate in card.items()]
    parts = [
        heading(f"Rate card {name}"),
        body(f"{FIRM}. {force} Without value added tax."),
        ruled([header, *rows]),
        gap(),
        body(
            "Work is charged by the card in force in the month in which it is done, whatever card "
            "was in force when the engagement began. Discounts are agreed in the engagement letter."
        ),
    ]
    one_column(path, f"Rate card {name}", parts)


def _cost(path: Path) -> None:
    rows = [[grade, f"{rate}"] for grade, rate in COST.items()]
    parts = [
        heading("Cost rates 2025"),
        body(f"{FIRM}, Finance. Confidential. Staff cost by grade, the same for the whole year."),
        borderless([["Grade", "GBP an hour"], *rows]),
        gap(),
        body(
            "The margin of an engagement is its fees less its staff cost, in percent of its fees. "
            "Expenses are charged on at cost and are no part of it. A fee earner who is promoted "
            "is costed, like charged, at the grade held in the month."
        ),
    ]
    one_column(path, "Cost rates 2025", parts)
