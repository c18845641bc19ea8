# SPDX-License-Identifier: Apache-2.0
"""A status report that overlooks a variation letter, and two proposals."""

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from facts.decoys import merrowfield_fees, merrowfield_margin
from facts.engagements import ENGAGEMENTS
from facts.fees import worth, year_cost
from facts.firm import FIRM
from facts.office import PROPOSED_HOURS, STEERED
from facts.people import name_of
from facts.rates import CARD_A

from paper.sheet import body, gap, heading, letterhead, one_column, sections
from paper.tables import percent, pounds, ruled, whole

STATUS = "HP-2504"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What was proposed before an engagement letter was written."""

    code: str
    dates: str
    asked: str
    plan: str
    hours: dict[str, int]
    """By grade; the letter may have other budgets."""


PROPOSALS = (
    Proposal(
        code="HP-2506",
        dates="2 June 2025. Valid until 31 July 2025.",
        asked="Which lines of business can grow by a tenth a year without more capital, and what "
        "each of them would need.",
        plan="Five months from August. Interviews and data in the first six weeks, options in the "
        "next eight, a plan at the end.",
        hours=ENGAGEMENTS["HP-2506"].budget_hours,
    ),
    Proposal(
        code=STEERED,
        dates="3 March 2025. Valid until 30 April 2025.",
        asked="Metering data of five regions that can be billed without being corrected first.",
        plan="Eight months from May. A data model in the first ten weeks, then region by region.",
        hours=PROPOSED_HOURS,
    ),
)


def write(drive: Path) -> None:
    """Write the report and the proposals below the drive."""
    _status(drive / f"Engagements/{ENGAGEMENTS[STATUS].folder}/status_report_2025-12.pdf")
    for proposal in PROPOSALS:
        _proposal(drive / f"Engagements/{ENGAGEMENTS[proposal.code].folder}/proposal.pdf", proposal)


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


def _proposal(path: Path, proposal: Proposal) -> None:
    terms = ENGAGEMENTS[proposal.code]
    rows = [
        [grade, f"{hours:,}", f"{CARD_A[grade]}", pounds(Decimal(hours * CARD_A[grade]))]
        for grade, hours in proposal.hours.items()
    ]
    estimate = worth(proposal.hours, CARD_A, terms.discount_permille)
    parts = [
        *letterhead(),
        heading(f"Proposal: {terms.title.lower()} for {terms.client}"),
        body(proposal.dates),
        *sections(
            [
                ("What you asked", proposal.asked),
                ("How we would work", f"{proposal.plan} {name_of(terms.manager)} would lead it."),
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
    one_column(path, f"Proposal {proposal.code}", parts)
