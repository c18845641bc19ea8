# SPDX-License-Identifier: Apache-2.0
"""Judge the steering pack: five criteria, each 0 or 1, and their mean as the reward.

Four ask for the edits. The fifth asks that the rest is as it was; that held before anyone worked,
so it counts only once one of the edits is there. A deck that is gone or broken is judged, as
wrong; where the verifier's own check fails nothing is judged.
"""

import copy
import json
import re
import sys
from pathlib import Path

from parts import Unreadable
from slides import Deck, Shape, snapshot
from verdict import Marks, conclude

DECK = "Engagements/HP-2508_Skelwith_Energy/steering_pack_2025-12.pptx"
BASELINE = Path(__file__).with_name("baseline.json")

TITLE = "Hours against budget at 31 December 2025"
BUDGET = {"Partner": 270, "Manager": 800, "Consultant": 860, "Analyst": 920}
WORKED = {"Partner": 283, "Manager": 842, "Consultant": 910, "Analyst": 964}
ROWS = [(grade, hours, WORKED[grade], hours - WORKED[grade]) for grade, hours in BUDGET.items()]
PLANNED, DONE = sum(BUDGET.values()), sum(WORKED.values())
ROWS.append(("Total", PLANNED, DONE, PLANNED - DONE))
USED = 100 * DONE / PLANNED
SENTENCE = "of budgeted hours used"
HOURS, STATUS = 2, 3
"""Index of the slides that are edited."""


def judge(found: Deck, baseline: Deck) -> Marks:
    """Criterion by criterion, 1 where it holds."""
    edits = {
        "title": _text(shape(found, HOURS, "Title 1")) == TITLE,
        "table": is_table(shape(found, HOURS, "Hours table")),
        "chart": is_chart(shape(found, HOURS, "Hours chart")),
        "hours_used": is_share(_text(shape(found, STATUS, "Status", "Hours used"))),
    }
    intact = any(edits.values()) and masked(found) == masked(baseline)
    return {name: int(holds) for name, holds in {**edits, "rest_intact": intact}.items()}


def shape(deck: Deck, slide: int, *names: str) -> Shape:
    """The shape of that name, or below a group of that name; empty unless there is just one."""
    shapes: list[Shape] = deck[slide]["shapes"] if slide < len(deck) else []
    found: Shape = {}
    for name in names:
        same = [each for each in shapes if each["name"] == name]
        found = same[0] if len(same) == 1 else {}
        shapes = found.get("shapes", [])
    return found


def _text(found: Shape) -> str:
    return " ".join(" ".join(found.get("text", [])).split())


def is_table(found: Shape) -> bool:
    """Whether the table has the right numbers under the heads that it had."""
    rows = found.get("rows", [])
    if not rows or [text.strip() for text in rows[0]] != ["Grade", "Budget", "Worked", "Left"]:
        return False
    return [_numbers(row) for row in rows[1:]] == [list(row) for row in ROWS]


def _numbers(row: list[str]) -> list[object]:
    return [row[0].strip(), *(_whole(text) for text in row[1:])]


def _whole(text: str) -> int | None:
    """`1,234`, `-12` or `(12)` as a number."""
    plain = re.sub(r"[\s,\u00a0\u202f]", "", text)
    plain = re.sub(r"^[\N{MINUS SIGN}\N{EN DASH}]", "-", re.sub(r"^\((.*)\)$", r"-\1", plain))
    return int(plain) if re.fullmatch(r"[-+]?\d{1,9}", plain, re.ASCII) else None


def is_chart(found: Shape) -> bool:
    """Whether the chart shows the right numbers, and its embedded workbook holds them too."""
    chart = found.get("chart", {})
    series = {each["name"]: each for each in chart.get("series", [])}
    if chart.get("kinds") != ["barChart"] or len(chart["series"]) != 2:
        return False
    return all(
        name in series
        and series[name]["categories"] == list(hours)
        and series[name]["values"] == list(hours.values())
        and series[name]["editable"] == list(hours.values())
        for name, hours in (("Budget", BUDGET), ("Worked", WORKED))
    )


def is_share(text: str) -> bool:
    """Whether the box's sentence has the right percentage, and one only."""
    found = re.fullmatch(rf"(\d{{1,3}}(?:[.,]\d{{1,2}})?)\s?% {SENTENCE}\.?", text, re.ASCII)
    return bool(found) and round(float(found[1].replace(",", "."))) == round(USED)


def masked(deck: Deck) -> Deck:
    """The deck without what is to be edited."""
    found = copy.deepcopy(deck)
    shape(found, HOURS, "Title 1")["text"] = None
    shape(found, HOURS, "Hours table")["rows"] = None
    shape(found, STATUS, "Status", "Hours used")["text"] = None
    shape(found, HOURS, "Hours chart").get("chart", {})["series"] = None
    return found


def read_deck(path: Path) -> Deck:
    """What the file holds; nothing at all where it is gone or cannot be read."""
    try:
        return snapshot(path)
    except Unreadable as cause:
        print(f"{path}: {cause}")
        return []


def solved(baseline: Deck) -> Deck:
    """The baseline with every edit made."""
    found = copy.deepcopy(baseline)
    shape(found, HOURS, "Title 1")["text"] = [TITLE]
    table = shape(found, HOURS, "Hours table")
    table["rows"] = [table["rows"][0], *([str(cell) for cell in row] for row in ROWS)]
    series = shape(found, HOURS, "Hours chart")["chart"]["series"]
    for each, hours in zip(series, (BUDGET, WORKED), strict=True):
        each["values"] = each["editable"] = list(hours.values())
    shape(found, STATUS, "Status", "Hours used")["text"] = [f"{USED:.0f} % {SENTENCE}"]
    return found


def judge_drive(drive: Path) -> Marks:
    """Check the judge on known decks, then judge the one that arrived."""
    baseline = json.loads(BASELINE.read_text(encoding="utf-8"))
    untouched, right = judge(baseline, baseline), judge(solved(baseline), baseline)
    if any(untouched.values()) or not all(right.values()):
        sys.exit("verifier: its own check failed, so it cannot judge")
    return judge(read_deck(drive / DECK), baseline)


if __name__ == "__main__":
    conclude(judge_drive)
