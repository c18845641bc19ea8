# SPDX-License-Identifier: Apache-2.0
"""Find the practice furthest below its target, from the final report, the forms and the minutes."""

import os
import re
from collections import Counter
from pathlib import Path

import pdfplumber
from pdfplumber.utils.pdfinternals import decode_text, resolve

FILES = Path(os.environ.get("FILESYSTEM_ROOT", "/filesystem"))
ANSWER = Path(os.environ.get("LOGS_ROOT", "/logs")) / "artifacts/final_answer.txt"


def text_of(path: Path) -> str:
    """The text of a page on one line."""
    with pdfplumber.open(path) as pdf:
        return " ".join(pdf.pages[0].extract_text().split())


def check_note() -> None:
    """The note in force divides by contract hours less leave and approved training."""
    with pdfplumber.open(FILES / "Policies/FP-11_utilisation.pdf") as pdf:
        page = pdf.pages[0]
        left = page.crop((0, 0, page.width / 2, page.height)).extract_text()
    assert "contract hours less leave less approved group training" in " ".join(left.split())


def hours() -> tuple[Counter[str], Counter[str]]:
    """Billable hours, and contract hours less leave, by practice, from the final version."""
    (report,) = (FILES / "Finance/Utilisation").glob("*_final.pdf")
    billable: Counter[str] = Counter()
    available: Counter[str] = Counter()
    with pdfplumber.open(report) as pdf:
        _, *rows = pdf.pages[0].extract_table()
    for practice, _, worked, contract, leave in rows:
        numbers = [float(text.replace(",", "")) for text in (worked, contract, leave)]
        billable[practice] += numbers[0]
        available[practice] += numbers[1] - numbers[2]
    return billable, available


def form(path: Path) -> dict[str, str]:
    """The values of a form's fields."""
    with pdfplumber.open(path) as pdf:
        fields = resolve(resolve(pdf.doc.catalog["AcroForm"])["Fields"])
        found = [resolve(field) for field in fields]
        return {decode_text(field["T"]): decode_text(field["V"]) for field in found}


def training() -> Counter[str]:
    """Approved hours by practice."""
    found: Counter[str] = Counter()
    for path in (FILES / "People/Training").glob("*.pdf"):
        values = form(path)
        if values["status"] == "Approved":
            found[values["practice"]] += int(values["total_hours"])
    return found


def targets() -> dict[str, float]:
    """Those of February, with what September changed for the fourth quarter."""
    with pdfplumber.open(FILES / "Board/minutes_2025-02-11.pdf") as pdf:
        _, *rows = pdf.pages[0].extract_table()
    found = {practice: float(target) for practice, target in rows}
    changed = text_of(FILES / "Board/minutes_2025-09-16.pdf")
    assert "with effect from the fourth quarter of 2025" in changed
    for practice, target in re.findall(r"(\w+) is changed from [\d.]+ % to ([\d.]+) %", changed):
        found[practice] = float(target)
    return found


def main() -> None:
    """Write the three lines of the answer."""
    check_note()
    billable, available = hours()
    available.subtract(training())
    found = {name: 100 * billable[name] / available[name] for name in billable}
    points = {name: found[name] - target for name, target in targets().items()}
    worst = min(points, key=points.__getitem__)
    lines = [
        f"Practice: {worst}",
        f"Utilisation: {found[worst]:.1f} %",
        f"Shortfall: {-points[worst]:.1f} points",
    ]
    ANSWER.parent.mkdir(parents=True, exist_ok=True)
    ANSWER.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
