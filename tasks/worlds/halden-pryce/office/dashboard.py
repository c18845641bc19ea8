# SPDX-License-Identifier: Apache-2.0
"""The board's dashboard: fees against plan, margin, utilisation, pipeline; with a chart."""

from datetime import UTC, datetime
from pathlib import Path

from facts.firm import MONTHS, PRACTICES
from facts.office import FEE_PLAN, PIPELINE, practice_cost, practice_fees
from facts.utilisation import QUARTER, available_hours, preliminary_billable_hours, target
from forms.workbook import MONEY, SHARE, TITLE, TOTAL, Book, Calc, Sheet, book

SAVED = datetime(2026, 1, 12, 8, 30, tzinfo=UTC)


def write(path: Path) -> None:
    """Write the workbook."""
    with book(path, saved=SAVED, author="Nora Quill") as found:
        board = found.sheet("Board")
        months = _months(found)
        utilisation = _utilisation(found)
        pipeline = _pipeline(found)
        _board(board, months, utilisation, pipeline)
        _chart(found, board)


def _months(found: Book) -> Sheet:
    sheet = found.sheet("Fees by month")
    sheet.head("Fees 2025 (GBP)", "A3", ("Month", *PRACTICES, "All"), (10, *[14] * 5))
    for row, month in enumerate(MONTHS, 4):
        fees = [float(practice_fees(practice, row - 3)) for practice in PRACTICES]
        sheet.put(f"A{row}", month)
        sheet.row(f"B{row}", fees, MONEY)
        sheet.put(f"F{row}", sheet.sum(f"B{row}:E{row}"), MONEY)
    sheet.put("A16", "Year", TOTAL)
    for letter in "BCDEF":
        sheet.put(f"{letter}16", sheet.sum(f"{letter}4:{letter}15"), MONEY, TOTAL)
    return sheet


def _utilisation(found: Book) -> Sheet:
    sheet = found.sheet("Utilisation")
    columns = ("Practice", "Billable", "Available", "Utilisation", "Target", "Points")
    sheet.head("Utilisation, fourth quarter, by FP-11 (version 2)", "A3", columns, (16, *[12] * 5))
    for row, practice in enumerate(PRACTICES, 4):
        billable = sum(preliminary_billable_hours(practice, month) for month in QUARTER)
        available, aim = available_hours(practice), target(practice) / 100
        share = billable / available
        sheet.row(f"A{row}", (practice, billable, available), MONEY)
        sheet.put(f"D{row}", Calc(f"=B{row}/C{row}", share), SHARE)
        sheet.put(f"E{row}", aim, SHARE)
        sheet.put(
            f"F{row}", Calc(f"=100*(D{row}-E{row})", 100 * (share - aim)), {"num_format": "0.0"}
        )
    return sheet


def _pipeline(found: Book) -> Sheet:
    sheet = found.sheet("Pipeline", hidden=True)
    columns = ("Client", "Title", "Practice", "Value", "Chance", "Weighted")
    sheet.head("Pipeline (GBP)", "A3", columns, (22, 20, 14, 12, 9, 12))
    for row, (client, title, practice, value, chance) in enumerate(PIPELINE, 4):
        sheet.row(f"A{row}", (client, title, practice))
        sheet.put(f"D{row}", value, MONEY)
        sheet.put(f"E{row}", chance / 100, SHARE)
        sheet.put(f"F{row}", Calc(f"=D{row}*E{row}", value * chance / 100), MONEY)
    last = 3 + len(PIPELINE)
    sheet.put(f"A{last + 1}", "All", TOTAL)
    for letter in "DF":
        sheet.put(f"{letter}{last + 1}", sheet.sum(f"{letter}4:{letter}{last}"), MONEY, TOTAL)
    return sheet


def _board(sheet: Sheet, months: Sheet, utilisation: Sheet, pipeline: Sheet) -> None:
    columns = ("Practice", "Fees", "Plan", "Against plan", "Staff cost", "Margin", "Utilisation Q4")
    sheet.head("KPI dashboard 2025", "A3", columns, (16, *[13] * 6))
    for row, practice in enumerate(PRACTICES, 4):
        source, cost = "BCDE"[row - 4], practice_cost(practice)
        fees, plan = months.at(f"{source}16"), FEE_PLAN[practice]
        sheet.put(f"A{row}", practice)
        sheet.put(f"B{row}", Calc(f"='Fees by month'!{source}16", fees), MONEY)
        sheet.put(f"C{row}", plan, MONEY)
        sheet.put(f"D{row}", Calc(f"=B{row}/C{row}-1", fees / plan - 1), SHARE)
        sheet.put(f"E{row}", cost, MONEY)
        sheet.put(f"F{row}", Calc(f"=(B{row}-E{row})/B{row}", (fees - cost) / fees), SHARE)
        sheet.put(f"G{row}", Calc(f"=Utilisation!D{row}", utilisation.at(f"D{row}")), SHARE)
    sheet.put("A8", "Firm", TOTAL)
    for letter in "BCE":
        sheet.put(f"{letter}8", sheet.sum(f"{letter}4:{letter}7"), MONEY, TOTAL)
    fees, plan, cost = (sheet.at(f"{letter}8") for letter in "BCE")
    sheet.put("D8", Calc("=B8/C8-1", fees / plan - 1), SHARE, TOTAL)
    sheet.put("F8", Calc("=(B8-E8)/B8", (fees - cost) / fees), SHARE, TOTAL)
    last = 4 + len(PIPELINE)
    sheet.row("A10", ("Weighted pipeline",), TITLE)
    sheet.put("C10", Calc(f"=Pipeline!F{last}", pipeline.at(f"F{last}")), MONEY)
    sheet.note("G3", "Version 2 of the report, of 19 December. To be replaced.", "Nora Quill")


def _chart(found: Book, board: Sheet) -> None:
    chart = found.file.add_chart({"type": "column", "subtype": "stacked"})
    assert chart is not None
    for number, practice in enumerate(PRACTICES, 1):
        chart.add_series(
            {
                "name": practice,
                "categories": ["Fees by month", 3, 0, 14, 0],
                "values": ["Fees by month", 3, number, 14, number],
            }
        )
    chart.set_title({"name": "Fees by month"})
    board.page.insert_chart("A13", chart, {"description": "Fees by month and practice"})
