# SPDX-License-Identifier: Apache-2.0
"""Work out the margin of HP-2504 from its letters, the rate cards, cost rates and the ledger."""

import os
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pdfplumber

FILES = Path(os.environ.get("FILESYSTEM_ROOT", "/filesystem"))
ANSWER = Path(os.environ.get("LOGS_ROOT", "/logs")) / "artifacts/final_answer.txt"
CODE, YEAR = "HP-2504", 2025

type ByDate = dict[tuple[int, int], float]
"""What holds from the month of a year on."""
type Card = dict[str, float]


def text_of(path: Path) -> str:
    """All of a document's text on one line."""
    with pdfplumber.open(path) as pdf:
        return " ".join((page.extract_text() or "") for page in pdf.pages).replace("\n", " ")


def month_of(words: str) -> tuple[int, int]:
    """Year and month of `1 July 2025`."""
    found = datetime.strptime(f"{words} +0000", "%d %B %Y %z")
    return found.year, found.month


def cards() -> dict[tuple[int, int], Card]:
    """Each rate card by the month from which it is in force."""
    found: dict[tuple[int, int], Card] = {}
    for path in sorted((FILES / "Rates").glob("rate_card_*.pdf")):
        with pdfplumber.open(path) as pdf:
            since = re.search(r"In force from (\d+ \w+ \d{4})", pdf.pages[0].extract_text())
            _, *rows = pdf.pages[0].extract_table()
        assert since, path
        found[month_of(since[1])] = {grade: float(rate) for grade, rate, _ in rows}
    return found


def discounts() -> ByDate:
    """The discount by the month from which it holds: the letter's, then the variation's."""
    (folder,) = (FILES / "Engagements").glob(f"{CODE}_*")
    letter = re.search(r"reduced by ([\d.]+) %", text_of(folder / "engagement_letter.pdf"))
    varied = re.search(
        r"For work from (\d+ \w+ \d{4}) they are reduced by ([\d.]+) %",
        text_of(folder / "variation_letter_1.pdf"),
    )
    assert letter, folder
    assert varied, folder
    return {(0, 0): float(letter[1]), month_of(varied[1]): float(varied[2])}


def cost_rates() -> Card:
    """Cost an hour by grade, from lines that end in a number."""
    with pdfplumber.open(FILES / "Rates/cost_rates_2025.pdf") as pdf:
        lines = pdf.pages[0].extract_text().splitlines()
    found = [re.fullmatch(r"([A-Z][a-z]+) (\d+)", line) for line in lines]
    return {match[1]: float(match[2]) for match in found if match}


def worked() -> Iterator[tuple[str, int, int]]:
    """Grade, month and hours of every cell of the engagement's rows."""
    with pdfplumber.open(FILES / "Finance/hours_ledger_2025.pdf") as pdf:
        rows = [row for page in pdf.pages for row in page.extract_table()]
    for code, person, grade, *months, _ in rows:
        if code == CODE and person != "All":
            for month, hours in enumerate(months, 1):
                yield grade, month, int(hours.replace("\N{EN DASH}", "0"))


def at(table: dict, month: int):
    """The entry that holds in the month: the latest that has begun."""
    return table[max(since for since in table if since <= (YEAR, month))]


def main() -> None:
    """Write the three lines of the answer."""
    rates, off, cost = cards(), discounts(), cost_rates()
    fees = costs = 0.0
    for grade, month, hours in worked():
        fees += hours * at(rates, month)[grade] * (1 - at(off, month) / 100)
        costs += hours * cost[grade]
    margin = 100 * (fees - costs) / fees
    lines = [f"Fees: £{fees:,.2f}", f"Staff cost: £{costs:,.2f}", f"Margin: {margin:.1f} %"]
    ANSWER.parent.mkdir(parents=True, exist_ok=True)
    ANSWER.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
