# SPDX-License-Identifier: Apache-2.0
"""The hours ledger: one ruled table over several pages, its header on each of them.

A person who was promoted has a row for each grade.
"""

from collections.abc import Iterator
from pathlib import Path

from facts.firm import FIRM, LEDGER_CLOSED, MONTHS
from facts.hours import HOURS
from facts.people import grade_in, name_of

from paper.sheet import body, heading, one_column
from paper.tables import day, ruled, whole


def write(drive: Path) -> None:
    """Write the ledger below the drive."""
    header = ["Engagement", "Person", "Grade", *MONTHS, "Total"]
    parts = [
        heading("Hours ledger 2025"),
        body(
            f"{FIRM}, Finance. Hours worked on engagements, by month. Closed on "
            f"{day(LEDGER_CLOSED)}: final. A dash is none."
        ),
        ruled([header, *_rows()], text_columns=3, size=8, height=19),
    ]
    one_column(drive / "Finance/hours_ledger_2025.pdf", "Hours ledger 2025", parts, wide=True)


def _rows() -> Iterator[list[str]]:
    for code, team in HOURS.items():
        for person, months in team.items():
            for grade in dict.fromkeys(grade_in(person, month) for month in range(1, 13)):
                held = [
                    hours if grade_in(person, month) == grade else 0
                    for month, hours in enumerate(months, 1)
                ]
                yield [code, name_of(person), grade, *map(whole, held), whole(sum(held))]
        by_month = [sum(months) for months in zip(*team.values(), strict=True)]
        yield [code, "All", "", *map(whole, by_month), whole(sum(by_month))]
