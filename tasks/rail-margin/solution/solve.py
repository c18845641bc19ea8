# SPDX-License-Identifier: Apache-2.0
"""Work out Rail's adjusted EBITDA margin from the note in force and the audited table."""

import os
import re
from pathlib import Path

import pdfplumber

FILES = Path(os.environ.get("FILESYSTEM_ROOT", "/filesystem"))
ANSWER = Path(os.environ.get("LOGS_ROOT", "/logs")) / "artifacts/final_answer.txt"
SEGMENT = "Rail"


def note_in_force() -> tuple[str, str]:
    """Number and text of the note that calls itself final, columns in reading order."""
    for path in sorted((FILES / "policies").glob("*.pdf")):
        with pdfplumber.open(path) as pdf:
            page = pdf.pages[0]
            if "Final. In force" in page.extract_text():
                middle = page.width / 2
                left = page.crop((0, 0, middle, page.height)).extract_text()
                right = page.crop((middle, 0, page.width, page.height)).extract_text()
                number = re.search(r"FN-\d{4}-\d{2}", path.name)
                assert number, path
                return number.group(), " ".join(f"{left} {right}".split())
    raise SystemExit("no finance note in force")


def listed(text: str, pattern: str) -> list[str]:
    """The items of the sentence that `pattern` finds, as rows of the table are called."""
    found = re.search(pattern, text)
    assert found, pattern
    return [item.strip().capitalize() for item in found.group(1).split(";")]


def results() -> dict[str, int]:
    """The segment's column of the audited table."""
    with pdfplumber.open(FILES / "results/segment_results_2025.pdf") as pdf:
        header, *rows = pdf.pages[0].extract_table()
    column = header.index(SEGMENT)
    return {row[0].removeprefix("of which ").capitalize(): amount(row[column]) for row in rows}


def amount(text: str) -> int:
    """The number a cell shows: a dash is zero, brackets are a minus."""
    digits = re.sub(r"[^\d]", "", text)
    return 0 if not digits else int(digits) * (-1 if text.startswith("(") else 1)


def main() -> None:
    """Write the three lines of the answer."""
    number, note = note_in_force()
    rows = results()
    ebitda = rows["Operating profit"]
    ebitda += sum(rows[item] for item in listed(note, r"added back: (.*?)\."))
    ebitda -= sum(rows[item] for item in listed(note, r"deducted: (.*?)\."))
    (base,) = listed(note, r"net revenue, which is revenue less (.*?)\.")
    margin = 100 * ebitda / (rows["Revenue"] - rows[base])
    lines = [
        f"Adjusted EBITDA: {ebitda:,} EUR thousand",
        f"Adjusted EBITDA margin: {margin:.1f} %",
        f"Finance note: {number}",
    ]
    ANSWER.parent.mkdir(parents=True, exist_ok=True)
    ANSWER.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
