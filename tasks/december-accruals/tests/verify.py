# SPDX-License-Identifier: Apache-2.0
"""Judge the accruals: five criteria, each 0 or 1, and their mean as the reward.

A document that is absent or broken is judged, as wrong; where the verifier's own check fails
nothing is judged.
"""

import re
import sys
from pathlib import Path

from parts import Unreadable
from tables import Table, tables
from verdict import Marks, conclude

DOCUMENT = "Finance/accruals_2025-12.docx"
HEAD = ("engagement", "hours", "accrual (gbp)")
HOURS = {
    "HP-2501": 246,
    "HP-2503": 283,
    "HP-2504": 304,
    "HP-2505": 229,
    "HP-2506": 285,
    "HP-2508": 243,
    "HP-2510": 297,
}
PENCE = {
    "HP-2501": 5_013_540,
    "HP-2503": 5_674_175,
    "HP-2504": 6_149_180,
    "HP-2505": 5_139_500,
    "HP-2506": 5_798_250,
    "HP-2508": 2_975_370,
    "HP-2510": 6_018_725,
}
VARIED, CAPPED = "HP-2504", "HP-2508"
PLAIN = tuple(code for code in PENCE if code not in (VARIED, CAPPED))

_CODE = re.compile(r"HP-\d{4}")
_AMOUNT = re.compile(r"(\d{1,3}(?:[, \u00a0\u202f]\d{3})+|\d{1,9})(?:\.(\d{1,2}))?", re.ASCII)


def judge(found: list[Table]) -> Marks:
    """Criterion by criterion, 1 where it holds."""
    rows = accruals(found)
    order = [row[0] for row in rows]
    amounts = {row[0]: _pence(row[2]) for row in rows if order.count(row[0]) == 1}
    hours = [(row[0], _pence(row[1])) for row in rows]
    expected = {**HOURS, "Total": sum(HOURS.values())}
    return {
        "hours": int(hours == [(code, 100 * found) for code, found in expected.items()]),
        "plain": int(all(amounts.get(code) == PENCE[code] for code in PLAIN)),
        "merrowfield": int(amounts.get(VARIED) == PENCE[VARIED]),
        "skelwith": int(amounts.get(CAPPED) == PENCE[CAPPED]),
        "total": int(amounts.get("Total") == sum(PENCE.values())),
    }


def accruals(found: list[Table]) -> list[list[str]]:
    """Rows of the one table with the right head, each led by its code; none where there are two."""
    fitting = [table for table in found if table and _head(table[0]) == HEAD]
    if len(fitting) != 1:
        return []
    return [[_code(row[0]), *row[1:]] for row in fitting[0][1:] if len(row) == len(HEAD)]


def _head(row: list[str]) -> tuple[str, ...]:
    return tuple(text.lower() for text in row)


def _code(text: str) -> str:
    codes = _CODE.findall(text)
    if len(codes) == 1:
        return codes[0]
    return "Total" if text.lower().rstrip(":") == "total" else text


def _pence(text: str) -> int | None:
    """`12,345.67` in pence; None for anything that is not one amount."""
    found = _AMOUNT.fullmatch(re.sub(r"^(?:£|GBP)\s*", "", text.strip()))
    if found is None:
        return None
    pounds = int(re.sub(r"[^\d]", "", found[1]))
    return 100 * pounds + int((found[2] or "0").ljust(2, "0"))


def read_tables(path: Path) -> list[Table]:
    """The document's tables; none where it is absent or cannot be read."""
    try:
        return tables(path)
    except Unreadable as cause:
        print(f"{path}: {cause}")
        return []


def solved() -> Table:
    """The table as it should be."""
    rows = [[code, str(HOURS[code]), f"{pence / 100:,.2f}"] for code, pence in PENCE.items()]
    total = ["Total", str(sum(HOURS.values())), f"{sum(PENCE.values()) / 100:,.2f}"]
    return [["Engagement", "Hours", "Accrual (GBP)"], *rows, total]


def judge_drive(drive: Path) -> Marks:
    """Check the judge on known tables, then judge the document that arrived."""
    if any(judge([]).values()) or not all(judge([solved()]).values()):
        sys.exit("verifier: its own check failed, so it cannot judge")
    return judge(read_tables(drive / DOCUMENT))


if __name__ == "__main__":
    conclude(judge_drive)
