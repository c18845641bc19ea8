# SPDX-License-Identifier: Apache-2.0
"""Utilisation of the practices in the fourth quarter of 2025, and how it was misreported.

By note FP-11, in force from 1 April 2025, utilisation is billable hours over available hours;
available hours are contract hours less leave less approved group training. The withdrawn note
FP-09 divided by contract hours. Targets in percent.
"""

from facts.engagements import ENGAGEMENTS
from facts.firm import PRACTICES, standard_hours
from facts.hours import HOURS, preliminary
from facts.people import FEE_EARNERS, team_of

NOTE, WITHDRAWN_NOTE = "FP-11", "FP-09"
QUARTER = (10, 11, 12)
LEAVE: dict[str, dict[int, int]] = {
    "Strategy": {10: 60, 11: 45, 12: 150},
    "Operations": {10: 52, 11: 38, 12: 160},
    "Digital": {10: 45, 11: 60, 12: 172},
    "Organisation": {10: 75, 11: 30, 12: 140},
}
"""Hours of leave by practice and month of the fourth quarter."""

TRAINING = {
    "TR-2025-17": ("Strategy", 96, "Declined"),
    "TR-2025-19": ("Digital", 150, "Approved"),
}
"""Group training forms of the quarter: practice, hours, status. Only approved hours count."""

TARGETS = {"Strategy": 72.0, "Operations": 74.0, "Digital": 72.0, "Organisation": 60.0}
"""Set on 11 February 2025 for the whole year."""
NEW_TARGETS = {"Organisation": 57.0}
"""Changed on 16 September 2025 for the fourth quarter."""


def contract_hours(practice: str, month: int) -> float:
    """Contract hours of the practice's fee earners."""
    return len(team_of(practice)) * standard_hours(month)


def billable_hours(practice: str, month: int) -> int:
    """Hours that the practice's fee earners worked on engagements, final."""
    return sum(
        months[month - 1]
        for team in HOURS.values()
        for person, months in team.items()
        if FEE_EARNERS[person].practice == practice
    )


def preliminary_billable_hours(practice: str, month: int) -> int:
    """The same as known on the cut-off day of 19 December 2025."""
    return sum(
        preliminary(code, person, month)
        for code in ENGAGEMENTS
        for person in HOURS[code]
        if FEE_EARNERS[person].practice == practice
    )


def training_hours(practice: str) -> int:
    """Approved group training of the quarter."""
    return sum(
        hours
        for name, hours, status in TRAINING.values()
        if name == practice and status == "Approved"
    )


def available_hours(practice: str) -> float:
    """Contract hours of the quarter less leave and approved training, by FP-11."""
    contract = sum(contract_hours(practice, month) for month in QUARTER)
    return contract - sum(LEAVE[practice].values()) - training_hours(practice)


def target(practice: str) -> float:
    """The practice's target for the fourth quarter."""
    return NEW_TARGETS.get(practice, TARGETS[practice])


def utilisation(practice: str) -> float:
    """Percent, for the fourth quarter, final and by the note in force."""
    billable = sum(billable_hours(practice, month) for month in QUARTER)
    return 100 * billable / available_hours(practice)


def second_version(practice: str) -> float:
    """Percent as version 2 of the report had it: without the late timesheets."""
    billable = sum(preliminary_billable_hours(practice, month) for month in QUARTER)
    return 100 * billable / available_hours(practice)


def first_version(practice: str) -> float:
    """Percent as the draft had it: without the late timesheets, over contract hours."""
    billable = sum(preliminary_billable_hours(practice, month) for month in QUARTER)
    return 100 * billable / sum(contract_hours(practice, month) for month in QUARTER)


def furthest_below() -> str:
    """The practice that missed its target by the most."""
    return min(PRACTICES, key=lambda practice: utilisation(practice) - target(practice))
