# SPDX-License-Identifier: Apache-2.0
"""Work out the accruals from ledger, rate card, register, variation letters and billing."""

import os
import re
from collections import defaultdict
from pathlib import Path

import openpyxl
import pdfplumber
from docx import Document

FILES = Path(os.environ.get("FILESYSTEM_ROOT", "/filesystem"))
ANSWER = FILES / "Finance/accruals_2025-12.docx"
DECEMBER = 12
HEAD = ("Engagement", "Hours", "Accrual (GBP)")

type Hours = dict[str, dict[str, int]]


def hours() -> Hours:
    """Hours of December by engagement and grade, from the ledger."""
    found: Hours = defaultdict(lambda: defaultdict(int))
    with pdfplumber.open(FILES / "Finance/hours_ledger_2025.pdf") as pdf:
        rows = [row for page in pdf.pages for row in page.extract_table()]
    for code, person, grade, *months, _ in rows:
        if code.startswith("HP-") and person != "All":
            found[code][grade] += int(months[DECEMBER - 1].replace("\N{EN DASH}", "0"))
    return found


def rates() -> dict[str, int]:
    """The card that is in force in December."""
    with pdfplumber.open(FILES / "Rates/rate_card_2025-B.pdf") as pdf:
        _, *rows = pdf.pages[0].extract_table()
    return {grade: int(rate) for grade, rate, _ in rows}


def rows_of(book: str, sheet: str) -> list[dict[str, object]]:
    """The rows of a list whose head is in row 3."""
    path = FILES / f"Finance/{book}.xlsx"
    head, *rows = openpyxl.load_workbook(path, data_only=True)[sheet].iter_rows(
        min_row=3, values_only=True
    )
    return [dict(zip(head, row, strict=True)) for row in rows if str(row[0]).startswith("HP-")]


def varied(code: str) -> float | None:
    """The discount that a variation letter sets for the end of the year, in percent."""
    for path in (FILES / "Engagements").glob(f"{code}_*/variation_letter_*.pdf"):
        with pdfplumber.open(path) as pdf:
            text = " ".join(pdf.pages[0].extract_text().split())
        found = re.search(r"from 1 \w+ 2025 they are reduced by ([\d.]+) %", text)
        assert found, text
        return float(found[1])
    return None


def accrual(terms: dict[str, object], gross: int, left: float | None) -> float:
    """Gross less discount, and no more than what is left under a cap."""
    discount = varied(str(terms["Engagement"]))
    percent = 100 * float(str(terms["Discount"])) if discount is None else discount
    amount = round(gross * (100 - percent) / 100 + 1e-9, 2)
    return amount if left is None else min(amount, left)


def main() -> None:
    """Write the document."""
    worked, card = hours(), rates()
    billed = {row["Engagement"]: row for row in rows_of("billing_2025", "By engagement")}
    rows: list[tuple[str, int, float]] = []
    for terms in rows_of("engagement_register", "Register"):
        code = str(terms["Engagement"])
        total = sum(worked[code].values())
        if terms["Basis"] == "fixed fee" or not total:
            continue
        gross = sum(found * card[grade] for grade, found in worked[code].items())
        left = billed[code]["Left"]
        rows.append(
            (code, total, accrual(terms, gross, None if left is None else float(str(left))))
        )
    rows.append(("Total", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    document = Document()
    document.add_heading("Accruals for December 2025", level=1)
    table = document.add_table(rows=1, cols=3)
    for cell, text in zip(table.rows[0].cells, HEAD, strict=True):
        cell.text = text
    for code, total, amount in rows:
        for cell, text in zip(
            table.add_row().cells, (code, f"{total:,}", f"{amount:,.2f}"), strict=True
        ):
            cell.text = text
    document.save(str(ANSWER))


if __name__ == "__main__":
    main()
