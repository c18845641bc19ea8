# SPDX-License-Identifier: Apache-2.0
"""Three versions of one report: a draft, a second one, and the final one that replaces both.

The first two state percentages that are wrong; the final one states the hours and leaves the
percentages to the note in force.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from facts.firm import FIRM, MONTHS, PRACTICES
from facts.utilisation import (
    LEAVE,
    NOTE,
    QUARTER,
    TARGETS,
    WITHDRAWN_NOTE,
    billable_hours,
    contract_hours,
    first_version,
    second_version,
    target,
)

from paper.sheet import body, gap, heading, one_column
from paper.tables import ruled

TITLE = "Utilisation, fourth quarter 2025"


def write(drive: Path) -> None:
    """Write the versions below the drive."""
    folder = drive / "Finance/Utilisation"
    _draft(folder / "utilisation_2025-Q4_v1_draft.pdf")
    _second(folder / "utilisation_2025-Q4_v2.pdf")
    _final(folder / "utilisation_2025-Q4_v3_final.pdf")


def _percentages(
    measure: Callable[[str], float], aim: Callable[[str], float]
) -> Iterator[list[str]]:
    yield ["Practice", "Utilisation, %", "Target, %", "Points"]
    for practice in PRACTICES:
        found, aimed = measure(practice), aim(practice)
        points = round(found, 1) - aimed
        yield [practice, f"{found:.1f}", f"{aimed:.1f}", f"{points:+.1f}"]


def _draft(path: Path) -> None:
    parts = [
        heading(TITLE),
        body(f"{FIRM}, Resourcing. Version 1, draft, 17 December 2025."),
        ruled(list(_percentages(first_version, TARGETS.__getitem__))),
        gap(),
        body(
            f"Worked out over contract hours, as note {WITHDRAWN_NOTE} had it, with December as "
            "far as timesheets were in. Targets of February. For discussion."
        ),
    ]
    one_column(path, f"{TITLE}, version 1", parts)


def _second(path: Path) -> None:
    worst = min(PRACTICES, key=lambda practice: second_version(practice) - target(practice))
    points = target(worst) - round(second_version(worst), 1)
    parts = [
        heading(TITLE),
        body(f"{FIRM}, Resourcing. Version 2, 19 December 2025. Replaces version 1."),
        body(
            f"By note {NOTE}. <b>{worst}</b> is furthest below its target, by {points:.1f} points. "
            "Timesheets of December that were not in by 19 December are missing."
        ),
        ruled(list(_percentages(second_version, target))),
    ]
    one_column(path, f"{TITLE}, version 2", parts)


def _final(path: Path) -> None:
    parts = [
        heading(TITLE),
        body(f"{FIRM}, Resourcing. Version 3, final, 9 January 2026. Replaces versions 1 and 2."),
        ruled(list(_hours()), text_columns=2),
        gap(),
        body(
            "Billable hours are those of the closed ledger, late timesheets included. Group "
            "training is not in this table: its forms are filed in People/Training. Percentages "
            f"are worked out by note {NOTE} and compared with the targets that the board has set "
            "for the quarter."
        ),
    ]
    one_column(path, f"{TITLE}, version 3", parts)


def _hours() -> Iterator[list[str]]:
    yield ["Practice", "Month", "Billable hours", "Contract hours", "Leave"]
    for practice in PRACTICES:
        for month in QUARTER:
            hours = [
                billable_hours(practice, month),
                contract_hours(practice, month),
                LEAVE[practice][month],
            ]
            yield [practice, MONTHS[month - 1], *(f"{found:,g}" for found in hours)]
