# SPDX-License-Identifier: Apache-2.0
"""Hours worked on engagements in 2025: final, as the ledger closed on 9 January 2026.

`HOURS[code][person]` holds twelve months. `LATE` are hours within it that were not yet entered
when the preliminary figures were taken.
"""

from facts.firm import Months
from facts.people import grade_in

HOURS: dict[str, dict[str, Months]] = {
    "HP-2501": {
        "gareth.holloway": (0, 0, 0, 27, 39, 39, 40, 30, 45, 44, 34, 24),
        "daniel.okoro": (0, 0, 0, 67, 112, 123, 112, 85, 105, 122, 112, 64),
        "lewis.brandt": (0, 0, 0, 76, 122, 135, 146, 106, 140, 130, 127, 77),
        "tariq.saleem": (0, 0, 0, 90, 119, 126, 132, 118, 141, 142, 140, 81),
    },
    "HP-2502": {
        "helena.marsden": (0, 30, 50, 46, 48, 45, 36, 0, 0, 0, 0, 0),
        "priya.nandan": (0, 61, 86, 86, 87, 88, 69, 0, 0, 0, 0, 0),
        "callum.reid": (0, 83, 129, 125, 125, 118, 95, 0, 0, 0, 0, 0),
        "jude.ashworth": (0, 81, 111, 109, 110, 116, 93, 0, 0, 0, 0, 0),
    },
    "HP-2503": {
        "judith.aldane": (51, 43, 45, 46, 42, 46, 54, 41, 53, 52, 46, 42),
        "erin.sutcliffe": (76, 69, 70, 72, 71, 76, 85, 59, 73, 75, 70, 66),
        "hugo.bellamy": (135, 111, 110, 119, 109, 113, 125, 107, 134, 127, 127, 100),
        "rory.fennick": (86, 80, 74, 83, 72, 84, 93, 61, 84, 83, 75, 75),
    },
    "HP-2504": {
        "marcus.vane": (0, 0, 35, 47, 46, 45, 56, 38, 52, 52, 44, 29),
        "leila.haddad": (0, 0, 45, 59, 71, 65, 75, 58, 73, 73, 63, 44),
        "nadia.petrov": (0, 0, 94, 128, 127, 114, 144, 99, 135, 134, 109, 76),
        "ben.oyelaran": (0, 0, 78, 109, 113, 130, 122, 110, 140, 124, 121, 77),
        "sam.rutherford": (0, 0, 90, 121, 131, 136, 136, 101, 136, 148, 132, 78),
    },
    "HP-2505": {
        "ruth.castell": (0, 0, 0, 0, 0, 53, 84, 72, 82, 94, 83, 44),
        "simone.archer": (0, 0, 0, 0, 0, 63, 109, 89, 108, 108, 88, 66),
        "aoife.kerrigan": (0, 0, 0, 0, 0, 88, 143, 110, 126, 130, 106, 69),
        "freya.lindqvist": (0, 0, 0, 0, 0, 60, 84, 71, 91, 95, 75, 50),
    },
    "HP-2506": {
        "owen.tregarth": (0, 0, 0, 0, 0, 0, 0, 58, 90, 96, 84, 59),
        "priya.nandan": (0, 0, 0, 0, 0, 0, 0, 52, 111, 110, 94, 59),
        "callum.reid": (0, 0, 0, 0, 0, 0, 0, 70, 122, 139, 105, 77),
        "jude.ashworth": (0, 0, 0, 0, 0, 0, 0, 75, 144, 132, 131, 90),
    },
    "HP-2507": {
        "gareth.holloway": (40, 39, 36, 40, 36, 43, 42, 32, 38, 40, 38, 33),
        "ruth.castell": (32, 32, 34, 36, 30, 35, 41, 28, 39, 35, 34, 32),
        "simone.archer": (37, 35, 37, 33, 37, 39, 38, 31, 42, 39, 35, 32),
        "lewis.brandt": (26, 25, 25, 25, 22, 16, 20, 21, 19, 32, 17, 22),
        "freya.lindqvist": (65, 67, 68, 69, 58, 60, 77, 61, 65, 67, 67, 55),
    },
    "HP-2508": {
        "marcus.vane": (0, 0, 0, 0, 25, 38, 45, 33, 38, 46, 35, 23),
        "tom.eversley": (0, 0, 0, 0, 75, 107, 135, 96, 119, 134, 105, 71),
        "chloe.winters": (0, 0, 0, 0, 84, 134, 138, 112, 116, 130, 126, 70),
        "yusuf.demir": (0, 0, 0, 0, 92, 125, 146, 111, 143, 134, 134, 79),
    },
    "HP-2509": {
        "judith.aldane": (0, 0, 20, 28, 28, 33, 32, 27, 32, 35, 22, 0),
        "colin.mayhew": (0, 0, 68, 104, 102, 106, 121, 88, 102, 103, 61, 0),
        "wanda.okafor": (0, 0, 86, 127, 106, 124, 137, 99, 118, 140, 79, 0),
        "rory.fennick": (0, 0, 39, 52, 49, 54, 55, 47, 51, 58, 33, 0),
    },
    "HP-2510": {
        "helena.marsden": (45, 39, 38, 40, 40, 36, 47, 32, 43, 42, 35, 34),
        "owen.tregarth": (34, 34, 32, 30, 33, 35, 34, 26, 37, 38, 30, 27),
        "alba.faria": (143, 126, 129, 114, 118, 120, 138, 98, 138, 144, 119, 109),
        "mei.tanaka": (138, 121, 138, 137, 136, 141, 138, 105, 130, 139, 136, 127),
    },
}

LATE: dict[tuple[str, str], int] = {
    ("HP-2501", "tariq.saleem"): 30,
    ("HP-2503", "erin.sutcliffe"): 40,
    ("HP-2503", "hugo.bellamy"): 60,
    ("HP-2504", "ben.oyelaran"): 45,
    ("HP-2508", "chloe.winters"): 24,
    ("HP-2510", "mei.tanaka"): 38,
}
"""December hours whose timesheets came after the cut-off of 19 December 2025."""


def by_grade(code: str, month: int) -> dict[str, int]:
    """Hours of the engagement in the month, by the grade held then."""
    found: dict[str, int] = {}
    for person, months in HOURS[code].items():
        if hours := months[month - 1]:
            grade = grade_in(person, month)
            found[grade] = found.get(grade, 0) + hours
    return found


def preliminary(code: str, person: str, month: int) -> int:
    """What was known on the cut-off day: in December without the late hours."""
    late = LATE.get((code, person), 0) if month == 12 else 0
    return HOURS[code][person][month - 1] - late
