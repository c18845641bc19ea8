# SPDX-License-Identifier: Apache-2.0
"""Engagement letters, one variation of a letter, and one extension into 2026."""

from collections.abc import Iterator
from pathlib import Path

from facts.engagements import CHANGES, ENGAGEMENTS, Basis, Engagement
from facts.firm import MONTHS
from facts.outlook import EXTENDED, EXTENSION_HOURS
from facts.people import name_of
from reportlab.platypus import Flowable

from paper.sheet import body, gap, heading, letterhead, one_column, sections
from paper.tables import percent, ruled

LETTERS = {
    "HP-2501": "17 March 2025",
    "HP-2504": "14 February 2025",
    "HP-2505": "19 May 2025",
    "HP-2508": "11 April 2025",
}
"""Dates of the letters that are filed on the drive."""


def write(drive: Path) -> None:
    """Write the letters below the drive."""
    for code, written in LETTERS.items():
        engagement = ENGAGEMENTS[code]
        path = drive / f"Engagements/{engagement.folder}/engagement_letter.pdf"
        one_column(path, f"Engagement letter {code}", list(_letter(engagement, written)))
    _variation(drive, ENGAGEMENTS["HP-2504"])
    _extension(drive, ENGAGEMENTS[EXTENDED])


def _address(engagement: Engagement, written: str) -> list[Flowable]:
    name, _ = engagement.contact
    return [*letterhead(), body(f"{written}<br/>{name}, {engagement.client}"), gap(4)]


def _signed(engagement: Engagement) -> list[Flowable]:
    name, _ = engagement.contact
    partner = name_of(engagement.partner)
    text = f"Signed for Halden Pryce LLP: {partner}<br/>Accepted for {engagement.client}: {name}"
    return [gap(8), body(text)]


def _letter(engagement: Engagement, written: str) -> Iterator[Flowable]:
    yield from _address(engagement, written)
    yield heading(f"{engagement.title}: engagement letter {engagement.code}")
    yield from sections(_clauses(engagement))
    header = ["Grade", "Budgeted hours 2025"]
    rows = [[grade, f"{hours:,}"] for grade, hours in engagement.budget_hours.items()]
    total = sum(engagement.budget_hours.values())
    yield ruled([header, *rows, ["All grades", f"{total:,}"]])
    yield from _signed(engagement)


def _clauses(engagement: Engagement) -> list[tuple[str, str]]:
    first, last = (MONTHS[month - 1] for month in engagement.months)
    return [
        (
            "1. Services",
            f"We work with {engagement.client} on the {engagement.title.lower()}, from {first} to "
            f"{last} 2025. {name_of(engagement.partner)} answers for the work, "
            f"{name_of(engagement.manager)} runs it.",
        ),
        ("2. Fees", _fees(engagement)),
        (
            "3. Discount",
            f"The rates of the card are reduced by {percent(engagement.discount_permille)} for all "
            "grades. A change of the discount needs a variation letter.",
        ),
        (
            "4. Rates",
            "Our rate card is reviewed twice a year. A new card applies to work from the day on "
            "which it comes into force; earlier work stays at the earlier card. A person who is "
            "promoted is charged at the new grade from the month of the promotion.",
        ),
        (
            "5. Expenses",
            "Travel and subsistence are charged at cost. On each invoice they do not exceed "
            f"{percent(engagement.expense_limit_permille)} of its fees.",
        ),
        (
            "6. Invoices",
            "We invoice each month for the work of the month before, with the hours of each grade "
            "as our hours ledger has them. Invoices are due within 30 days.",
        ),
        (
            "7. Budget",
            "The hours that we expect, by grade, are below. They are a budget, not a limit.",
        ),
    ]


def _fees(engagement: Engagement) -> str:
    text = "Work is charged by the hour, at our rate card in force when it is done."
    if engagement.basis is Basis.CAPPED:
        return (
            f"{text} Fees after discount do not exceed {engagement.fee:,} pounds in all; hours "
            "above that cap are worked and not charged."
        )
    return text


def _variation(drive: Path, engagement: Engagement) -> None:
    month, permille = CHANGES[engagement.code]
    path = drive / f"Engagements/{engagement.folder}/variation_letter_1.pdf"
    parts = [
        *_address(engagement, "22 August 2025"),
        heading(f"{engagement.title}: variation letter 1 to {engagement.code}"),
        body(
            f"This letter changes our engagement letter of {LETTERS[engagement.code]}. Clause 3 "
            "now reads:"
        ),
        body(
            "<b>3. Discount.</b> For work up to 31 August 2025 the rates of the card are reduced "
            f"by {percent(engagement.discount_permille)}. For work from 1 September 2025 "
            f"they are reduced by {percent(permille)}, in return for the second phase, which runs "
            "into 2026."
        ),
        body("Everything else stays as agreed. The variation ranks before the letter."),
        *_signed(engagement),
    ]
    assert month == 9
    one_column(path, f"Variation letter 1 to {engagement.code}", parts)


def _extension(drive: Path, engagement: Engagement) -> None:
    path = drive / f"Engagements/{engagement.folder}/extension_letter.pdf"
    header = ["Grade", "Q1 2026", "Q2 2026", "Q3 2026", "Q4 2026"]
    rows = [[grade, *map(str, hours)] for grade, hours in EXTENSION_HOURS.items()]
    parts = [
        *_address(engagement, "17 December 2025"),
        heading(f"{engagement.title}: extension of {engagement.code} into 2026"),
        body(
            "We extend the engagement to 31 December 2026, at our rate card in force when the work "
            "is done. The hours that we plan are these:"
        ),
        ruled([header, *rows]),
        gap(),
        body(
            "The discount for 2026 is not yet agreed. It is confirmed by mail between "
            f"{name_of('ruth.castell')} and {engagement.contact[0]} and then holds for the whole "
            "year. Otherwise the engagement letter stays in force."
        ),
        *_signed(engagement),
    ]
    one_column(path, f"Extension of {engagement.code}", parts)
