# SPDX-License-Identifier: Apache-2.0
"""Statements of the world that are wrong, where they stand, and what supersedes them."""

from dataclasses import dataclass
from decimal import Decimal

from facts.engagements import ENGAGEMENTS
from facts.fees import worth, year_cost
from facts.hours import by_grade
from facts.rates import CARD_A, CARD_B, card_in


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoy:
    """One wrong statement: the task that meets it, what is wrong, and what holds instead."""

    task: str
    stands_in: str
    says: str
    superseded_by: str


def merrowfield_fees() -> Decimal:
    """As the status report has them: without the variation letter."""
    terms = ENGAGEMENTS["HP-2504"]
    months = range(terms.months[0], terms.months[1] + 1)
    found = (
        worth(by_grade(terms.code, month), card_in(month), terms.discount_permille)
        for month in months
    )
    return sum(found, Decimal())


def merrowfield_margin() -> float:
    """Percent, as the status report has it."""
    fees = merrowfield_fees()
    return float(100 * (fees - year_cost("HP-2504")) / fees)


def tarnbrook_july() -> Decimal:
    """What the first invoice review took for an overcharge: July at card 2025-B."""
    hours = by_grade("HP-2501", 7)
    return worth(hours, CARD_B, 80) - worth(hours, CARD_A, 80)


DECOYS = (
    Decoy(
        task="merrowfield-margin",
        stands_in="Engagements/HP-2504_Merrowfield_Bank/status_report_2025-12.pdf",
        says="fees and margin at a discount of 7.5 % all year",
        superseded_by="variation_letter_1.pdf: 18 % from September",
    ),
    Decoy(
        task="tarnbrook-overcharge",
        stands_in="Finance/Invoices/invoice_review_first_pass.pdf",
        says="the July invoice is too high because it uses card 2025-B",
        superseded_by="clause 4 of the engagement letter; a mail of 21 October withdraws the note",
    ),
    Decoy(
        task="utilisation-gap",
        stands_in="Finance/Utilisation/utilisation_2025-Q4_v2.pdf",
        says="Organisation missed its target by the most",
        superseded_by="utilisation_2025-Q4_v3_final.pdf, with the late timesheets",
    ),
    Decoy(
        task="utilisation-gap",
        stands_in="Board/kpi_dashboard.xlsx",
        says="utilisation as in version 2",
        superseded_by="utilisation_2025-Q4_v3_final.pdf, with the late timesheets",
    ),
    Decoy(
        task="utilisation-gap",
        stands_in="Board/board_pack_2026-01.pptx",
        says="utilisation as in version 2",
        superseded_by="utilisation_2025-Q4_v3_final.pdf, with the late timesheets",
    ),
    Decoy(
        task="lindale-forecast",
        stands_in="mail of 5 January 2026 from ruth.castell",
        says="a discount of 6 % for 2026",
        superseded_by="her correction of 8 January 2026: 7.5 %",
    ),
    Decoy(
        task="skelwith-pack",
        stands_in="Finance/timesheets_2025_preliminary.xlsx",
        says="December hours as of 19 December 2025",
        superseded_by="hours_ledger_2025.pdf, closed on 9 January 2026",
    ),
    Decoy(
        task="skelwith-pack",
        stands_in="Engagements/HP-2508_Skelwith_Energy/proposal.pdf",
        says="budgeted hours of the proposal",
        superseded_by="engagement_letter.pdf: the budget in clause 7",
    ),
    Decoy(
        task="december-accruals",
        stands_in="Finance/engagement_register.xlsx",
        says="the discount of HP-2504 is 7.5 %",
        superseded_by="variation_letter_1.pdf: 18 % from September",
    ),
)
