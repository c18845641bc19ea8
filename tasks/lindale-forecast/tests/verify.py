# SPDX-License-Identifier: Apache-2.0
"""Judge the forecast: five criteria, each 0 or 1, and their mean as the reward.

Four ask for the edits. The fifth asks that the rest is as it was; that held before anyone worked,
so it counts only once one of the edits is there. A workbook that is gone or broken is judged, as
wrong; where the verifier's own check fails nothing is judged.
"""

import copy
import json
import sys
from pathlib import Path

from recalculation import Recalculation, Unsupported
from sheets import Snapshot, Unreadable, is_formula, same_formula, snapshot, value
from verdict import Marks, conclude

WORKBOOK = "Finance/forecast_2026.xlsx"
BASELINE = Path(__file__).with_name("baseline.json")

DISCOUNT = ("Assumptions", "B4", 0.075)
RATES = {f"B{row}": rate for row, rate in enumerate((455, 365, 285, 210, 140), 5)}
HOURS = {
    f"{letter}{row}": hours
    for row, quarters in enumerate(
        ((120, 110, 90, 80), (230, 240, 210, 160), (380, 395, 340, 250), (290, 300, 260, 180)), 4
    )
    for letter, hours in zip("CDEF", quarters, strict=True)
}
LINKS = dict(zip(("B4", "C4", "D4", "E4"), "CDEF", strict=True))
"""Cell of the summary and the column of its quarter on sheet `Lindale`."""
EDITED = {
    DISCOUNT[:2],
    *(("Assumptions", cell) for cell in RATES),
    *(("Lindale", cell) for cell in HOURS),
    *(("Summary", cell) for cell in LINKS),
}
PROBES = ((0.25, (7, 11, 13, 17), 3), (0.5, (101, 103, 107, 109), 19))
"""Discount, rates from Principal to Analyst, and the hours' first number."""


def judge(found: Snapshot, baseline: Snapshot) -> Marks:
    """Criterion by criterion, 1 where it holds."""
    edits = {
        "discount": is_close(value(found, *DISCOUNT[:2]), DISCOUNT[2]),
        "rates": all(is_close(value(found, "Assumptions", c), RATES[c]) for c in RATES),
        "hours": all(is_close(value(found, "Lindale", cell), HOURS[cell]) for cell in HOURS),
        "linked": is_linked(found),
    }
    intact = any(edits.values()) and is_rest_intact(found, baseline)
    return {name: int(holds) for name, holds in {**edits, "rest_intact": intact}.items()}


def is_close(content: object, expected: float) -> bool:
    """Whether the cell holds this number."""
    return isinstance(content, int | float) and abs(content - expected) <= 1e-9


def is_linked(found: Snapshot) -> bool:
    """Whether the summary follows the sheet's fees, whatever the inputs are."""
    try:
        return all(_follows(found, *probe) for probe in PROBES)
    except Unsupported:
        return False


def _follows(found: Snapshot, discount: float, rates: tuple[int, ...], first: int) -> bool:
    hours = {cell: float(first + 2 * number) for number, cell in enumerate(HOURS)}
    inputs = {DISCOUNT[:2]: discount}
    inputs |= {("Assumptions", f"B{row}"): float(rate) for row, rate in enumerate(rates, 6)}
    inputs |= {("Lindale", cell): worked for cell, worked in hours.items()}
    numbers = Recalculation(found, inputs)
    for cell, column in LINKS.items():
        gross = sum(hours[f"{column}{row}"] * rate for row, rate in enumerate(rates, 4))
        if abs(numbers.cell("Summary", cell) - gross * (1 - discount)) > 0.51:
            return False
    return True


def is_rest_intact(found: Snapshot, baseline: Snapshot) -> bool:
    """Whether sheets, names, notes and every other cell are what they were."""
    if found["order"] != baseline["order"] or found["names"] != baseline["names"]:
        return False
    return all(_is_same_sheet(found, baseline, sheet) for sheet in baseline["sheets"])


def _is_same_sheet(found: Snapshot, baseline: Snapshot, sheet: str) -> bool:
    now, then = found["sheets"][sheet], baseline["sheets"][sheet]
    if any(now[part] != then[part] for part in ("merged", "freeze", "notes")):
        return False
    cells = {cell for cell in {**now["cells"], **then["cells"]} if (sheet, cell) not in EDITED}
    return all(_is_same_cell(now["cells"].get(cell), then["cells"].get(cell)) for cell in cells)


def _is_same_cell(now: list[object] | None, then: list[object] | None) -> bool:
    if now is None or then is None or now[1:] != then[1:]:
        return False
    if is_formula(then[0]):
        return same_formula(now[0], then[0])
    return is_close(now[0], then[0]) if isinstance(then[0], float) else now[0] == then[0]


def read_workbook(path: Path) -> Snapshot:
    """What the file holds; nothing at all where it is gone or cannot be read."""
    try:
        return snapshot(path)
    except Unreadable as cause:
        print(f"{path}: {cause}")
        return {"order": [], "sheets": {}, "names": {}}


def solved(baseline: Snapshot) -> Snapshot:
    """The baseline with every edit made."""
    found = copy.deepcopy(baseline)
    sheets = {name: found["sheets"][name]["cells"] for name in found["sheets"]}
    sheets["Assumptions"][DISCOUNT[1]][0] = DISCOUNT[2]
    for cell, rate in RATES.items():
        sheets["Assumptions"][cell][0] = float(rate)
    for cell, hours in HOURS.items():
        sheets["Lindale"][cell] = [float(hours), "", False]
    for cell, column in LINKS.items():
        sheets["Summary"][cell] = [f"=Lindale!{column}11", "", False]
    return found


def judge_drive(drive: Path) -> Marks:
    """Check the judge on known workbooks, then judge the one that arrived."""
    baseline = json.loads(BASELINE.read_text(encoding="utf-8"))
    untouched, right = judge(baseline, baseline), judge(solved(baseline), baseline)
    if any(untouched.values()) or not all(right.values()):
        sys.exit("verifier: its own check failed, so it cannot judge")
    return judge(read_workbook(drive / WORKBOOK), baseline)


if __name__ == "__main__":
    conclude(judge_drive)
