# SPDX-License-Identifier: Apache-2.0
"""Judge which practice is furthest below its target, its utilisation and the distance.

Three criteria, each 0 or 1. The practice alone is a guess among four: it counts only beside a
right figure.
"""

import re

from answer import Marks, claim, is_close, run

BILLABLE, AVAILABLE, TARGET = 840 + 734 + 582, 3_360.0 - 255, 72.0
UTILISATION = 100 * BILLABLE / AVAILABLE
PRACTICE, PRACTICES = "strategy", ("strategy", "operations", "digital", "organisation")
RIGHT = "Practice: Strategy\nUtilisation: 69.4 %\nShortfall: 2.6 points"


def judge(answer: str) -> Marks:
    """Criterion by criterion, 1 where it holds."""
    utilisation = is_close(claim(answer, "Utili[sz]ation"), UTILISATION, 0.0505)
    shortfall = _is_shortfall(claim(answer, "Shortfall"))
    named = re.findall("|".join(PRACTICES), claim(answer, "Practice").lower())
    return {
        "practice": int(set(named) == {PRACTICE} and (utilisation or shortfall)),
        "utilisation": int(utilisation),
        "shortfall": int(shortfall),
    }


def _is_shortfall(text: str) -> bool:
    """Whether it is the distance, written with or without the minus of `below`."""
    distance = TARGET - UTILISATION
    return any(is_close(text, sign * distance, 0.0505) for sign in (1, -1))


if __name__ == "__main__":
    run(judge, RIGHT)
