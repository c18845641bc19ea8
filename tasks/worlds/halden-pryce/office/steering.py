# SPDX-License-Identifier: Apache-2.0
"""The steering pack of HP-2508 as it stood on 30 November, with the budget of the proposal."""

from datetime import UTC, datetime
from pathlib import Path

from facts.engagements import ENGAGEMENTS
from facts.fees import time_fee
from facts.office import PROPOSED_HOURS, STEERED, hours_to
from forms.deck import FOOT, LEFT, RIGHT, Page, deck

SAVED = datetime(2025, 12, 5, 15, 45, tzinfo=UTC)
LAST_MONTH = 11
NOTES = (
    "Hours come from the hours ledger once a month is closed, never from preliminary timesheets. "
    "The budget is that of the engagement letter."
)
RISKS = (
    ("Risk", "Owner", "Answer"),
    ("Meter feeds arrive late", "Skelwith", "Daily call with the data owner since October"),
    ("The cap is reached in December", "Halden Pryce", "Agree an extension in January"),
    ("Test data is incomplete", "Skelwith", "Sample of three regions instead of five"),
)


def write(path: Path) -> None:
    """Write the deck."""
    client = ENGAGEMENTS[STEERED].client
    with deck(path, saved=SAVED, author="Tom Eversley", title="Steering pack") as slides:
        cover = slides.cover("Metering data: steering pack", f"{client}, December 2025")
        cover.notes("For the steering meeting in January. Sent ahead to Farida Noor.")
        done = ("Data model agreed for all five regions", "Reconciliation runs daily since October")
        slides.bullets("Progress", (*done, "Handbook for the data owners is in review"))
        _hours(slides.page("Hours against budget at 30 November 2025"))
        _status(slides.page("Where we stand"))
        risks = slides.page("Risks")
        risks.table("Risk table", RISKS, (0.5, 1.6, 9.0, 2.4))
        risks.notes("The cap is in clause 2 of the letter. Do not promise hours beyond it.")


def _hours(page: Page) -> None:
    worked = hours_to(STEERED, LAST_MONTH)
    rows = [
        (grade, budget, worked[grade], budget - worked[grade])
        for grade, budget in PROPOSED_HOURS.items()
    ]
    planned, done = sum(PROPOSED_HOURS.values()), sum(worked.values())
    rows.append(("Total", planned, done, planned - done))
    texts = [[str(cell) for cell in row] for row in rows]
    page.table("Hours table", [["Grade", "Budget", "Worked", "Left"], *texts], LEFT)
    series = {
        "Budget": list(PROPOSED_HOURS.values()),
        "Worked": [worked[grade] for grade in PROPOSED_HOURS],
    }
    page.chart("Hours chart", list(PROPOSED_HOURS), series, RIGHT, title="Hours by grade")
    page.text("Source", "Source: Halden Pryce hours ledger", FOOT, size=11)
    page.notes(NOTES)


def _status(page: Page) -> None:
    used = sum(hours_to(STEERED, LAST_MONTH).values()) / sum(PROPOSED_HOURS.values())
    charged = sum(time_fee(STEERED, month) for month in range(1, LAST_MONTH + 1))
    boxes = (
        ("Hours used", f"{100 * used:.0f} % of budgeted hours used"),
        ("Cap charged", f"{100 * charged / ENGAGEMENTS[STEERED].fee:.0f} % of the cap charged"),
        ("Next step", "Extension to be agreed in January"),
    )
    page.group("Status", boxes, (0.5, 2.0, 9.0, 1.6))
    page.text("Remark", "Charged means invoiced up to and including November.", FOOT, size=11)
    page.notes("Hours used are worked hours over budgeted hours, all grades together.")
