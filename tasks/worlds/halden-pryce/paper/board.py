# SPDX-License-Identifier: Apache-2.0
"""Minutes of two board meetings that set and then changed the utilisation targets."""

from pathlib import Path

from facts.firm import FIRM
from facts.people import STAFF, name_of
from facts.utilisation import NEW_TARGETS, TARGETS

from paper.sheet import body, gap, heading, one_column, sections
from paper.tables import ruled

RESOLUTION = (
    "The target for the utilisation of "
    + ", ".join(
        f"{practice} is changed from {TARGETS[practice]:.1f} % to {aim:.1f} %"
        for practice, aim in NEW_TARGETS.items()
    )
    + ", with effect from the fourth quarter of 2025, because a programme ends in November. The "
    "targets of the other practices stay as they were set on 11 February 2025."
)


def write(drive: Path) -> None:
    """Write the minutes below the drive."""
    present = (
        f"Present: {', '.join(name for name, _ in list(STAFF.values())[:3])}, the four partners."
    )
    _february(drive / "Board/minutes_2025-02-11.pdf", present)
    _september(drive / "Board/minutes_2025-09-16.pdf", present)


def _february(path: Path, present: str) -> None:
    targets = [[practice, f"{aim:.1f}"] for practice, aim in TARGETS.items()]
    parts = [
        heading("Minutes of the board, 11 February 2025"),
        body(f"{FIRM}. {present}"),
        *sections(
            [
                ("1. Accounts 2024", "The accounts are received. The audit starts in March."),
                ("2. Utilisation", "Targets for 2025, in percent, by practice:"),
            ]
        ),
        ruled([["Practice", "Target"], *targets]),
        gap(),
        *sections([("3. Rate card", "A new rate card is prepared for 1 July 2025.")]),
    ]
    one_column(path, "Minutes of the board, 11 February 2025", parts)


def _september(path: Path, present: str) -> None:
    parts = [
        heading("Minutes of the board, 16 September 2025"),
        body(f"{FIRM}. {present}"),
        *sections(
            [
                (
                    "1. Order book",
                    "Penhallow Insurance has started. Merrowfield Bank goes on into 2026, at the "
                    "discount of its variation letter.",
                ),
                ("2. Utilisation", RESOLUTION),
                (
                    "3. Promotions",
                    f"{name_of('nadia.petrov')}'s promotion in July is noted. The next round is in "
                    "January.",
                ),
            ]
        ),
    ]
    one_column(path, "Minutes of the board, 16 September 2025", parts)
