# SPDX-License-Identifier: Apache-2.0
"""Judge the budget workbook: five criteria, each 0 or 1, and their mean as the reward.

Three criteria ask for the edits. Two ask that the rest is as it was; that held before anyone
worked, so they count only once one of the edits is there. Exits non-zero and writes no reward
where it cannot judge: the artifacts did not arrive, or its own check on known content fails. A
workbook that is gone or broken is judged, as wrong.
"""

import copy
import io
import json
import math
import os
import sys
from pathlib import Path

from formula import Unsupported, follows
from openpyxl import Workbook, load_workbook
from workbook import Snapshot, Unreadable, is_formula, number, snapshot, take, value

FILES = Path(os.environ.get("FILESYSTEM_ROOT", "/filesystem"))
LOGS = Path(os.environ.get("LOGS_ROOT", "/logs"))
WORKBOOK = "planning/budget_2026.xlsx"
BASELINE = Path(__file__).with_name("baseline.json")

DIESEL = ("Assumptions", "B4", 1.482)
KM = {
    "Nordhaven": (1_284, 3_910, 640),
    "Eastmere": (965, 2_745, 0),
    "Kilbrook": (1_742, 1_388, 0),
    "Sandwick": (418, 2_206, 915),
    "Torvale": (1_103, 1_874, 372),
    "Westerfall": (687, 3_052, 1_240),
}
TARIFF = (0.151, 0.223, 0.291)
TOLLS = {
    f"E{row}": sum(km * price for km, price in zip(kilometres, TARIFF, strict=True))
    for row, kilometres in enumerate(KM.values(), 4)
}
TOTAL = "E10"
EDITED = {("Assumptions", "B4"), *(("Depots", cell) for cell in [*TOLLS, TOTAL])}
PROBES = ((1, 10, 100, 1_000, 10_000, 100_000), (3, 1, 4, 1, 5, 9))


def judge(found: Snapshot, baseline: Snapshot) -> dict[str, int]:
    """Criterion by criterion, 1 where it holds."""
    edits = {
        "diesel_price": is_close(value(found, *DIESEL[:2]), DIESEL[2], 1e-6),
        "tolls": all(is_close(value(found, "Depots", cell), TOLLS[cell], 0.51) for cell in TOLLS),
        "tolls_total": is_total(found),
    }
    kept = {
        "formulas_kept": are_formulas_kept(found, baseline),
        "rest_intact": is_rest_intact(found, baseline),
    }
    started = any(edits.values())
    return {name: int(holds) for name, holds in edits.items()} | {
        name: int(holds and started) for name, holds in kept.items()
    }


def is_close(content: object, expected: float, within: float) -> bool:
    """Whether the cell holds this number."""
    shown = number(content)
    return shown is not None and abs(shown - expected) <= within


def is_total(found: Snapshot) -> bool:
    """Whether the total is a formula that follows the tolls, whatever they are."""
    content = value(found, "Depots", TOTAL)
    if not is_formula(content):
        return False
    try:
        return all(_totals(str(content), probe, found) for probe in PROBES)
    except Unsupported:
        return False


def _totals(formula: str, probe: tuple[int, ...], found: Snapshot) -> bool:
    def other(cell: str) -> float:
        content = value(found, "Depots", cell)
        if cell == TOTAL or is_formula(content):
            raise Unsupported(f"refers to {cell}")
        return number(content) or 0.0

    cells = dict(zip(TOLLS, map(float, probe), strict=True))
    return math.isclose(follows(formula, "Depots", cells, other), sum(probe))


def are_formulas_kept(found: Snapshot, baseline: Snapshot) -> bool:
    """Whether every formula of the untouched workbook still stands in its cell."""
    return all(
        _formula_text(value(found, sheet, cell)) == _formula_text(content)
        for sheet, part in baseline["sheets"].items()
        for cell, (content, *_) in part["cells"].items()
        if is_formula(content)
    )


def _formula_text(content: object) -> str:
    return "".join(str(content).split()).upper()


def is_rest_intact(found: Snapshot, baseline: Snapshot) -> bool:
    """Whether sheets, names and every other cell are what they were."""
    if found["order"] != baseline["order"] or found["names"] != baseline["names"]:
        return False
    return all(_is_same_sheet(found, baseline, sheet) for sheet in baseline["order"])


def _is_same_sheet(found: Snapshot, baseline: Snapshot, sheet: str) -> bool:
    now, then = found["sheets"].get(sheet), baseline["sheets"][sheet]
    if now is None or any(now[part] != then[part] for part in ("merged", "freeze", "validations")):
        return False
    cells = {cell for cell in {**now["cells"], **then["cells"]} if (sheet, cell) not in EDITED}
    return all(_is_same_cell(now["cells"].get(cell), then["cells"].get(cell)) for cell in cells)


def _is_same_cell(now: list[object] | None, then: list[object] | None) -> bool:
    if now is None or then is None or now[1:] != then[1:]:
        return False
    if is_formula(then[0]):
        return is_formula(now[0])
    expected = number(then[0])
    return now[0] == then[0] if expected is None else is_close(now[0], expected, 1e-9)


def read_workbook(path: Path) -> Snapshot:
    """What the file holds; nothing at all where it is gone or cannot be read."""
    try:
        return snapshot(path)
    except Unreadable as cause:
        print(f"{path}: {cause}")
        return {"order": [], "sheets": {}, "names": {}}


def check_myself(baseline: Snapshot) -> None:
    """Ends the program where known content does not get the marks it must get."""
    book = Workbook()
    book["Sheet"]["A1"] = "=1+1"
    saved = io.BytesIO()
    book.save(saved)
    if value(take(load_workbook(saved)), "Sheet", "A1") != "=1+1":
        sys.exit("verifier: openpyxl does not read what it wrote, so it cannot judge")
    solved = copy.deepcopy(baseline)
    solved["sheets"]["Assumptions"]["cells"]["B4"][0] = DIESEL[2]
    depots = solved["sheets"]["Depots"]["cells"]
    depots |= {cell: [round(tolls), "#,##0", False] for cell, tolls in TOLLS.items()}
    depots[TOTAL] = ["=SUM(E4:E9)", "#,##0", False]
    if any(judge(baseline, baseline).values()) or not all(judge(solved, baseline).values()):
        sys.exit("verifier: its own check failed, so it cannot judge")


def write_reward(criteria: dict[str, int], verifier: Path) -> None:
    """The reward file, complete or absent."""
    rewards = {"reward": sum(criteria.values()) / len(criteria), **criteria}
    verifier.mkdir(parents=True, exist_ok=True)
    draft = verifier / "reward.json.tmp"
    draft.write_text(json.dumps(rewards), encoding="utf-8")
    draft.replace(verifier / "reward.json")


def main() -> None:
    """Check the judge, judge, write."""
    baseline = json.loads(BASELINE.read_text(encoding="utf-8"))
    check_myself(baseline)
    if not FILES.is_dir():
        sys.exit(f"verifier: {FILES} did not arrive, so there is nothing to judge")
    criteria = judge(read_workbook(FILES / WORKBOOK), baseline)
    print(json.dumps(criteria))
    write_reward(criteria, LOGS / "verifier")


if __name__ == "__main__":
    main()
