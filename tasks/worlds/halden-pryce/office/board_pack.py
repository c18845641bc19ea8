# SPDX-License-Identifier: Apache-2.0
"""The board pack of January 2026: the year, utilisation, pipeline, decisions."""

from datetime import UTC, datetime
from pathlib import Path

from facts.firm import FIRM, MONTHS, PRACTICES
from facts.office import FEE_PLAN, PIPELINE, practice_cost, practice_fees
from facts.utilisation import second_version, target
from forms.deck import BODY, LEFT, RIGHT, Slides, deck
from pptx.enum.chart import XL_CHART_TYPE

SAVED = datetime(2026, 1, 12, 8, 45, tzinfo=UTC)


def write(path: Path) -> None:
    """Write the deck."""
    with deck(path, saved=SAVED, author="Nora Quill", title="Board pack") as slides:
        slides.cover(f"{FIRM}: board pack", "Meeting of 20 January 2026")
        _year(slides)
        _months(slides)
        _utilisation(slides)
        _pipeline(slides)
        _decisions(slides)


def _year(slides: Slides) -> None:
    page = slides.page("The year 2025")
    rows = [["Practice", "Fees", "Plan", "Staff cost", "Margin"]]
    for practice in PRACTICES:
        fees = float(sum(practice_fees(practice, month) for month in range(1, 13)))
        rows.append(_figures(practice, fees, FEE_PLAN[practice], practice_cost(practice)))
    fees = float(sum(practice_fees(each, month) for each in PRACTICES for month in range(1, 13)))
    cost = sum(practice_cost(practice) for practice in PRACTICES)
    rows.append(_figures("Firm", fees, sum(FEE_PLAN.values()), cost))
    page.table("Year table", rows, (0.5, 1.6, 9.0, 3.2))
    page.notes("Pounds. Fees include December, which is invoiced on 15 January.")


def _figures(label: str, fees: float, plan: int, cost: int) -> list[str]:
    margin = f"{100 * (fees - cost) / fees:.1f} %"
    return [label, f"{fees:,.0f}", f"{plan:,}", f"{cost:,}", margin]


def _months(slides: Slides) -> None:
    page = slides.page("Fees by month")
    series = {
        practice: [round(float(practice_fees(practice, month)) / 1000, 1) for month in range(1, 13)]
        for practice in PRACTICES
    }
    kind = XL_CHART_TYPE.COLUMN_STACKED
    page.chart("Fees chart", MONTHS, series, BODY, title="GBP thousand", kind=kind)
    page.notes("Fixed fees fall in the month of their instalment.")


def _utilisation(slides: Slides) -> None:
    page = slides.page("Utilisation, fourth quarter")
    found = {practice: (second_version(practice), target(practice)) for practice in PRACTICES}
    rows = [
        [practice, f"{share:.1f} %", f"{aim:.0f} %", f"{share - aim:+.1f}"]
        for practice, (share, aim) in found.items()
    ]
    page.table("Utilisation table", [["Practice", "Reached", "Target", "Points"], *rows], LEFT)
    series = {
        "Reached": [round(share, 1) for share, _ in found.values()],
        "Target": [aim for _, aim in found.values()],
    }
    page.chart("Utilisation chart", PRACTICES, series, RIGHT, title="Percent")
    page.notes("Version 2 of the report, of 19 December 2025. To be replaced.")


def _pipeline(slides: Slides) -> None:
    page = slides.page("Pipeline")
    rows = [
        [client, title, practice, f"{value:,}", f"{chance} %"]
        for client, title, practice, value, chance in PIPELINE
    ]
    head = ["Client", "Work", "Practice", "Value", "Chance"]
    page.table("Pipeline table", [head, *rows], (0.5, 1.6, 9.0, 3.6))
    weighted = sum(value * chance for *_, value, chance in PIPELINE) // 100
    page.notes(f"Weighted by chance: {weighted:,} pounds.")


def _decisions(slides: Slides) -> None:
    page = slides.page("Decisions asked for")
    boxes = (
        ("Targets", "Keep the target of 57 % for Organisation in 2026"),
        ("Hiring", "Two analysts for Operations from April"),
        ("Rates", "Note card 2026-A, in force since 1 January"),
    )
    page.group("Decisions", boxes, (0.5, 2.0, 9.0, 1.8))
    page.notes("The first two need a vote.")
