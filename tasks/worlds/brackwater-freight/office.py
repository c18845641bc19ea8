# SPDX-License-Identifier: Apache-2.0
"""The office files: the budget workbook, with formulas and their values, and a contract note.

openpyxl stores no value beside a formula and stamps the time of saving; python-docx leaves the
archive's clock running. `_settle` puts the values in and the clocks out.
"""

import io
import re
import zipfile
from pathlib import Path

import facts
from docx import Document
from docx.document import Document as WordFile
from openpyxl import Workbook
from openpyxl.comments import Comment
from openpyxl.styles import Alignment, Font, PatternFill
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.worksheet import Worksheet

FIRST, LAST, TOTAL = 4, 9, 10
"""Rows of the depots and of their total."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
_MODIFIED = b"2026-01-05T08:00:00Z"

type Values = dict[str, dict[str, float]]


def write(drive: Path) -> None:
    """Write both files below the drive."""
    workbook, values = _budget()
    buffer = io.BytesIO()
    workbook.save(buffer)
    (drive / "planning/budget_2026.xlsx").write_bytes(_settle(buffer.getvalue(), values))
    note = io.BytesIO()
    _contract().save(note)
    (drive / "operations/fuel_contract_2026.docx").write_bytes(_settle(note.getvalue(), {}))


def _budget() -> tuple[Workbook, Values]:
    workbook = Workbook()
    workbook.remove(workbook.worksheets[0])
    sheets = [workbook.create_sheet(name) for name in ("Assumptions", "Depots", "Summary", "Notes")]
    assumptions, depots, summary, notes = sheets
    _assumptions(workbook, assumptions)
    values: Values = {"xl/worksheets/sheet2.xml": _depots(depots)}
    values["xl/worksheets/sheet3.xml"] = _summary(summary, values["xl/worksheets/sheet2.xml"])
    _notes(notes)
    return workbook, values


def _head(sheet: Worksheet, title: str, columns: tuple[str, ...]) -> None:
    sheet["A1"] = title
    sheet["A1"].font = Font(bold=True, size=14)
    sheet.merge_cells(start_row=1, end_row=1, start_column=1, end_column=len(columns))
    for column, text in enumerate(columns, 1):
        cell = sheet.cell(row=3, column=column, value=text)
        cell.font = Font(bold=True)
        cell.fill = PatternFill("solid", start_color="DDE6EE")
        cell.alignment = Alignment(wrap_text=True)
    sheet.column_dimensions["A"].width = 24
    sheet.freeze_panes = "B4"


def _assumptions(workbook: Workbook, sheet: Worksheet) -> None:
    _head(sheet, "Budget 2026: assumptions", ("Item", "Value", "Unit", "Source"))
    rows = [
        ("Diesel price", facts.DIESEL_2025, "EUR per litre", "fuel contract", "0.000"),
        ("Fuel use", facts.LITRES_PER_100_KM, "litres per 100 km", "fleet telematics", "0.0"),
        ("Driver cost", facts.DRIVER_COST_PER_KM, "EUR per km", "payroll", "0.000"),
        ("Cost inflation", facts.COST_INFLATION, "a year", "Group Finance", "0.0%"),
    ]
    for number, (item, value, unit, source, shown) in enumerate(rows, FIRST):
        sheet.append([item, value, unit, source])
        sheet.cell(row=number, column=2).number_format = shown
    workbook.defined_names["DieselPrice"] = DefinedName("DieselPrice", attr_text="Assumptions!$B$4")
    bounds = DataValidation(type="decimal", operator="between", formula1="0.5", formula2="3")
    bounds.add("B4")
    sheet.add_data_validation(bounds)


def _depots(sheet: Worksheet) -> dict[str, float]:
    columns = ("Depot", "Kilometres (thousand)", "Litres (thousand)", "Fuel", "Tolls", "Drivers")
    _head(sheet, "Budget 2026: depots (EUR thousand)", (*columns, "Total"))
    sheet["E3"].comment = Comment("2026 tolls, whole thousands. Not filled in yet.", "Finance")
    values: dict[str, float] = {}
    for row, depot in enumerate(facts.PLANNED_KM, FIRST):
        km = facts.planned_thousand_km(depot)
        litres, drivers = km * facts.LITRES_PER_100_KM / 100, km * facts.DRIVER_COST_PER_KM
        fuel = litres * facts.DIESEL_2025
        sheet.cell(row=row, column=1, value=depot)
        sheet.cell(row=row, column=2, value=km)
        sheet.cell(row=row, column=3, value=f"=B{row}*Assumptions!$B$5/100")
        sheet.cell(row=row, column=4, value=f"=C{row}*DieselPrice")
        sheet.cell(row=row, column=6, value=f"=B{row}*Assumptions!$B$6")
        sheet.cell(row=row, column=7, value=f"=D{row}+E{row}+F{row}")
        found = {"B": km, "C": litres, "D": fuel, "F": drivers, "G": fuel + drivers}
        values |= {f"{column}{row}": value for column, value in found.items()}
    _depot_totals(sheet, values)
    return values


def _depot_totals(sheet: Worksheet, values: dict[str, float]) -> None:
    sheet.cell(row=TOTAL, column=1, value="All depots").font = Font(bold=True)
    for column in "BCDFG":
        sheet[f"{column}{TOTAL}"] = f"=SUM({column}{FIRST}:{column}{LAST})"
        rows = range(FIRST, LAST + 1)
        values[f"{column}{TOTAL}"] = sum(values[f"{column}{row}"] for row in rows)
    for row in range(FIRST, TOTAL + 1):
        for column in "BCDEFG":
            sheet[f"{column}{row}"].number_format = "#,##0"


def _summary(sheet: Worksheet, depots: dict[str, float]) -> dict[str, float]:
    _head(sheet, "Budget 2026: summary (EUR thousand)", ("Cost", "Budget 2026"))
    other = facts.OTHER_COSTS_2025 * (1 + facts.COST_INFLATION)
    total = depots["D10"] + depots["F10"] + other
    rows = [
        ("Fuel", "=Depots!D10", depots["D10"]),
        ("Tolls", "=Depots!E10", 0.0),
        ("Drivers", "=Depots!F10", depots["F10"]),
        ("Other", f"={facts.OTHER_COSTS_2025}*(1+Assumptions!B7)", other),
        ("Total", "=SUM(B4:B7)", total),
        ("EUR per km", "=B8/Depots!B10", total / depots["B10"]),
    ]
    for row, (label, formula, _) in enumerate(rows, FIRST):
        sheet.append([label, formula])
        sheet.cell(row=row, column=2).number_format = "0.000" if row == 9 else "#,##0"
    return {f"B{row}": value for row, (_, _, value) in enumerate(rows, FIRST)}


def _notes(sheet: Worksheet) -> None:
    sheet["A1"] = "Notes"
    sheet["A1"].font = Font(bold=True)
    sheet["A2"] = "Inputs are typed over. Formulas are left alone."
    sheet["A3"] = "Tolls come from the tariff and the planned kilometres, see planning_notes.md."


def _contract() -> WordFile:
    document = Document()
    document.add_heading("Fuel contract 2026", level=1)
    document.add_paragraph(
        "The tender for diesel closed on 18 December 2025. The supplier of the past year was "
        "confirmed. The contract runs from 1 January to 31 December 2026."
    )
    table = document.add_table(rows=1, cols=3)
    table.rows[0].cells[0].text = "Contract"
    table.rows[0].cells[1].text = "Price, EUR per litre"
    table.rows[0].cells[2].text = "Status"
    for year, price, status in (
        ("2025", facts.DIESEL_2025, "expired"),
        ("2026", facts.DIESEL_2026, "signed"),
    ):
        cells = table.add_row().cells
        cells[0].text, cells[1].text, cells[2].text = year, f"{price:.3f}", status
    document.add_paragraph(
        "Prices are fixed, without value added tax, and hold for every depot. The budget uses the "
        "signed price."
    )
    return document


def _settle(archive: bytes, values: Values) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = _with_values(old.read(name), values.get(name, {}))
            entry = zipfile.ZipInfo(name, date_time=_EPOCH)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
            entry.external_attr = 0o644 << 16
            new.writestr(entry, _without_clock(name, content))
    return out.getvalue()


def _without_clock(name: str, content: bytes) -> bytes:
    if name != "docProps/core.xml":
        return content
    pattern = rb"(<dcterms:(created|modified)[^>]*>)[^<]*"
    return re.sub(pattern, rb"\g<1>" + _MODIFIED, content)


def _with_values(sheet: bytes, values: dict[str, float]) -> bytes:
    def put(match: re.Match[bytes]) -> bytes:
        value = values[match["cell"].decode()]
        return match["head"] + b"<v>%s</v></c>" % repr(round(value, 10)).encode()

    pattern = rb'(?P<head><c r="(?P<cell>[A-Z]+\d+)"[^>]*><f>[^<]*</f>)<v\s*/?>(</v>)?</c>'
    return re.sub(pattern, put, sheet) if values else sheet
