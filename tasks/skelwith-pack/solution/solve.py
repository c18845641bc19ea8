# SPDX-License-Identifier: Apache-2.0
"""Put the hours of the closed ledger and the budget of the letter into the steering pack."""

import os
import re
from collections import Counter
from pathlib import Path

import pdfplumber
from pptx import Presentation
from pptx.chart.data import CategoryChartData

FILES = Path(os.environ.get("FILESYSTEM_ROOT", "/filesystem"))
CODE = "HP-2508"
FOLDER = FILES / "Engagements/HP-2508_Skelwith_Energy"
DECK = FOLDER / "steering_pack_2025-12.pptx"


def budget() -> dict[str, int]:
    """Budgeted hours by grade, from the table of the engagement letter."""
    with pdfplumber.open(FOLDER / "engagement_letter.pdf") as pdf:
        tables = [table for page in pdf.pages for table in page.extract_tables()]
    (rows,) = [table[1:] for table in tables if table[0][0] == "Grade"]
    return {grade: int(hours) for grade, hours in rows if grade != "All grades"}


def worked() -> Counter[str]:
    """Hours of the year by grade, from the ledger."""
    hours: Counter[str] = Counter()
    with pdfplumber.open(FILES / "Finance/hours_ledger_2025.pdf") as pdf:
        rows = [row for page in pdf.pages for row in page.extract_table()]
    for code, person, grade, *_, total in rows:
        if code == CODE and person != "All":
            hours[grade] += int(total.replace(",", ""))
    return hours


def main() -> None:
    """Edit title, table, chart and box, save in place."""
    planned, done = budget(), worked()
    rows = [(grade, hours, done[grade], hours - done[grade]) for grade, hours in planned.items()]
    totals = [sum(row[column] for row in rows) for column in (1, 2, 3)]
    deck = Presentation(str(DECK))
    slide = deck.slides[2]
    shapes = {shape.name: shape for shape in slide.shapes}
    slide.shapes.title.text = slide.shapes.title.text.replace("30 November", "31 December")
    shown = list(shapes["Hours table"].table.rows)[1:]
    for row, texts in zip(shown, [*rows, ("Total", *totals)], strict=True):
        for cell, text in zip(list(row.cells)[1:], texts[1:], strict=True):
            cell.text = str(text)
    data = CategoryChartData()
    data.categories = list(planned)
    data.add_series("Budget", [row[1] for row in rows])
    data.add_series("Worked", [row[2] for row in rows])
    shapes["Hours chart"].chart.replace_data(data)
    (status,) = [shape for shape in deck.slides[3].shapes if shape.name == "Status"]
    (box,) = [shape for shape in status.shapes if shape.name == "Hours used"]
    percent = f"{100 * totals[1] / totals[0]:.0f} %"
    box.text_frame.text = re.sub(r"\d+ %", percent, box.text_frame.text)
    deck.save(str(DECK))


if __name__ == "__main__":
    main()
