# SPDX-License-Identifier: Apache-2.0
"""Judge which invoice charges too much, by how many hours and by how much money.

Three criteria, each 0 or 1. The invoice alone is a guess among six: it counts only beside a right
figure.
"""

import re

from answer import Marks, claim, is_close, number, run

INVOICE, HOURS, GRADE, CREDIT = "121", 14.0, "consultant", 2_447.20
GRADES = ("partner", "principal", "manager", "consultant", "analyst")
RIGHT = "Invoice: INV-2025-121\nExcess hours: 14 Consultant\nCredit: £2,447.20"


def judge(answer: str) -> Marks:
    """Criterion by criterion, 1 where it holds."""
    hours = _is_excess(claim(answer, "Excess hours"))
    credit = is_close(claim(answer, "Credit"), CREDIT, 0.005)
    invoices = re.findall(r"INV-2025-(\d+)", claim(answer, "Invoice"), re.IGNORECASE)
    named = set(invoices) == {INVOICE}
    return {
        "invoice": int(named and (hours or credit)),
        "excess_hours": int(hours),
        "credit": int(credit),
    }


def _is_excess(text: str) -> bool:
    grades = [grade for grade in GRADES if grade in text.lower()]
    return number(text) == HOURS and grades == [GRADE]


if __name__ == "__main__":
    run(judge, RIGHT)
