# SPDX-License-Identifier: Apache-2.0
"""Compare the invoices to Tarnbrook Water with the ledger, the cards and the letter."""

import os
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pdfplumber

FILES = Path(os.environ.get("FILESYSTEM_ROOT", "/filesystem"))
ANSWER = Path(os.environ.get("LOGS_ROOT", "/logs")) / "artifacts/final_answer.txt"
CODE = "HP-2501"
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()

type Card = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Invoice:
    """What an invoice charges: hours and rate by grade, discount, expenses."""

    number: str
    month: int
    lines: dict[str, tuple[int, float]]
    discount: float
    fees: float
    expenses: float


def amount(text: str) -> float:
    """`1,234.50` as a number."""
    return float(text.replace(",", ""))


def read_invoice(path: Path) -> Invoice:
    """The invoice in the file."""
    with pdfplumber.open(path) as pdf:
        text, (_, *rows) = pdf.pages[0].extract_text(), pdf.pages[0].extract_table()

    def after(pattern: str) -> str:
        found = re.search(pattern, text)
        assert found, (path, pattern)
        return found[1]

    return Invoice(
        number=path.stem,
        month=MONTHS.index(after(r"Work of (\w{3}) 2025")) + 1,
        lines={grade: (int(hours), float(rate)) for grade, hours, rate, _ in rows},
        discount=float(after(r"Discount ([\d.]+) %")),
        fees=amount(after(r"Fees ([\d,.]+)")),
        expenses=amount(after(r"Expenses ([\d,.]+)")),
    )


def terms() -> tuple[float, float]:
    """Discount and limit of expenses in percent, from the letter."""
    (folder,) = (FILES / "Engagements").glob(f"{CODE}_*")
    with pdfplumber.open(folder / "engagement_letter.pdf") as pdf:
        text = " ".join(pdf.pages[0].extract_text().split())
    found = re.search(r"reduced by ([\d.]+) %.*do not exceed ([\d.]+) % of its fees", text)
    assert found, text
    return float(found[1]), float(found[2])


def card(month: int) -> Card:
    """The rate card in force in the month."""
    name = "B" if month >= 7 else "A"
    with pdfplumber.open(FILES / f"Rates/rate_card_2025-{name}.pdf") as pdf:
        since = {"A": "1 January 2025", "B": "1 July 2025"}[name]
        assert f"In force from {since}" in pdf.pages[0].extract_text()
        _, *rows = pdf.pages[0].extract_table()
    return {grade: float(rate) for grade, rate, _ in rows}


def ledger() -> Counter[tuple[int, str]]:
    """Hours of the engagement by month and grade."""
    hours: Counter[tuple[int, str]] = Counter()
    with pdfplumber.open(FILES / "Finance/hours_ledger_2025.pdf") as pdf:
        rows = [row for page in pdf.pages for row in page.extract_table()]
    for code, person, grade, *months, _ in rows:
        if code == CODE and person != "All":
            for month, worked in enumerate(months, 1):
                hours[month, grade] += int(worked.replace("\N{EN DASH}", "0"))
    return hours


def main() -> None:
    """Write the three lines of the answer."""
    discount, limit = terms()
    hours, lines = ledger(), []
    for path in sorted((FILES / "Finance/Invoices").glob("INV-*.pdf")):
        invoice = read_invoice(path)
        assert invoice.discount == discount, invoice
        assert invoice.expenses <= invoice.fees * limit / 100, invoice
        rates = card(invoice.month)
        for grade, (charged, rate) in invoice.lines.items():
            assert rate == rates[grade], invoice
            excess = charged - hours[invoice.month, grade]
            if excess > 0:
                credit = excess * rate * (1 - discount / 100)
                lines += [
                    f"Invoice: {invoice.number}",
                    f"Excess hours: {excess} {grade}",
                    f"Credit: £{credit:,.2f}",
                ]
    ANSWER.parent.mkdir(parents=True, exist_ok=True)
    ANSWER.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
