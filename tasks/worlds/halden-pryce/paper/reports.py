# SPDX-License-Identifier: Apache-2.0
"""A status report that overlooks a variation letter, and a proposal."""

from decimal import Decimal
from pathlib import Path

from facts.decoys import merrowfield_fees, merrowfield_margin
from facts.engagements import ENGAGEMENTS
from facts.fees import worth, year_cost
from facts.firm import FIRM
from facts.people import name_of
from facts.rates import CARD_A

from paper.sheet import body, gap, heading, letterhead, one_column, sections
from paper.tables import percent, pounds, ruled, whole

STATUS, PROPOSED = "HP-2504", "HP-2506"


def write(drive: Path) -> None:
    """Write both below the drive."""
    _status(drive / f"Engagements/{ENGAGEMENTS[STATUS].folder}/status_report_2025-12.pdf")
    _proposal(drive / f"Engagements/{ENGAGEMENTS[PROPOSED].folder}/proposal.pdf")


def _status(path: Path) -> None:
    terms = ENGAGEMENTS[STATUS]
    rows = [
        ["Fees", whole(merrowfield_fees())],
        ["Staff cost", whole(year_cost(STATUS))],
        ["Margin, %", f"{merrowfield_margin():.1f}"],
    ]
    parts = [
        heading(f"{terms.client}: status at the end of 2025"),
        body(f"{FIRM}, {terms.practice}. {name_of(terms.partner)}, 9 January 2026."),
        body("The first phase is finished. The second goes on into 2026 with the same team."),
        ruled([["GBP", "2025"], *rows]),
        gap(),
        body(
            "Fees were worked out by the engagement letter, at a discount of "
            f"{percent(terms.discount_permille)} for the whole year. Later changes of terms are "
            "not in these figures."
        ),
    ]
    one_column(path, f"Status of {STATUS}", parts)


def _proposal(path: Path) -> None:
    terms = ENGAGEMENTS[PROPOSED]
    rows = [
        [grade, f"{hours:,}", f"{CARD_A[grade]}", pounds(Decimal(hours * CARD_A[grade]))]
        for grade, hours in terms.budget_hours.items()
    ]
    estimate = worth(terms.budget_hours, CARD_A, terms.discount_permille)
    parts = [
        *letterhead(),
        heading(f"Proposal: {terms.title.lower()} for {terms.client}"),
        body("2 June 2025. Valid until 31 July 2025."),
        *sections(
            [
                (
                    "What you asked",
                    "Which lines of business can grow by a tenth a year without more capital, and "
                    "what each of them would need.",
                ),
                (
                    "How we would work",
                    f"Five months from August, led by {name_of(terms.manager)}. Interviews and "
                    "data in the first six weeks, options in the next eight, a plan at the end.",
                ),
                ("What it would cost", "Hours and rates of card 2025-A, before discount:"),
            ]
        ),
        ruled([["Grade", "Hours", "Rate", "GBP"], *rows]),
        gap(),
        body(
            f"With a discount of {percent(terms.discount_permille)} that is {pounds(estimate)} "
            "pounds. The estimate is not a fixed price: work is charged by the card in force when "
            "it is done."
        ),
    ]
    one_column(path, f"Proposal {PROPOSED}", parts)
