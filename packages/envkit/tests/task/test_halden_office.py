# SPDX-License-Identifier: Apache-2.0
"""The workbooks and decks of `halden-pryce`, read back and held against the facts."""

from decimal import Decimal
from pathlib import Path

import pytest

pytest.importorskip("pptx", reason="not run: office libraries absent")

import openpyxl
from openpyxl import Workbook
from pptx import Presentation

from .recalculate import recalculate
from .world_code import world_modules

WORLD = "halden-pryce"
WORKBOOKS = (
    "Board/kpi_dashboard.xlsx",
    "Engagements/HP-2504_Merrowfield_Bank/budget_tracker.xlsx",
    "Finance/billing_2025.xlsx",
    "Finance/engagement_register.xlsx",
    "Finance/expenses_2025.xlsx",
    "Finance/forecast_2026.xlsx",
    "Finance/timesheets_2025_preliminary.xlsx",
    "People/capacity_2025.xlsx",
)
DECKS = (
    "Board/board_pack_2026-01.pptx",
    "Engagements/HP-2506_Penhallow_Insurance/growth_options_interim.pptx",
    "Engagements/HP-2508_Skelwith_Energy/steering_pack_2025-12.pptx",
)
office, engagements, fees, hours, invoices, extra, utilisation = world_modules(
    WORLD,
    [
        "office", "facts.engagements", "facts.fees", "facts.hours", "facts.invoices",
        "facts.office", "facts.utilisation",
    ],
)  # fmt: skip


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("drive")
    office.write(found)
    return found


def values(drive: Path, name: str) -> Workbook:
    return openpyxl.load_workbook(drive / name, data_only=True)


def table(book: Workbook, sheet: str, head: int = 3) -> dict[object, dict[object, object]]:
    """Rows below the head by their first cell, as far as it is filled."""
    titles, *rows = list(book[sheet].iter_rows(min_row=head, values_only=True))
    return {row[0]: dict(zip(titles, row, strict=True)) for row in rows if row[0]}


def test_there_are_the_promised_files(drive: Path) -> None:
    found = {str(path.relative_to(drive)) for path in drive.rglob("*") if path.is_file()}
    assert found == {*WORKBOOKS, *DECKS}


@pytest.mark.parametrize("name", WORKBOOKS)
def test_values_beside_formulas_are_what_the_formulas_give(drive: Path, name: str) -> None:
    shown = values(drive, name)
    found = recalculate(openpyxl.load_workbook(drive / name))
    assert len(found) > 10
    for (sheet, cell), value in found.items():
        assert shown[sheet][cell].value == pytest.approx(value, abs=1e-6), f"{sheet}!{cell}"


@pytest.mark.parametrize("name", WORKBOOKS)
def test_a_workbook_has_formulas_across_sheets_a_hidden_sheet_and_notes(
    drive: Path, name: str
) -> None:
    book = openpyxl.load_workbook(drive / name)
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    assert any("!" in str(cell.value) for cell in cells if str(cell.value).startswith("="))
    assert "hidden" in {sheet.sheet_state for sheet in book}
    assert any(cell.comment for cell in cells)


def test_billing_holds_the_invoices(drive: Path) -> None:
    rows = table(values(drive, "Finance/billing_2025.xlsx"), "Invoices")
    for invoice in invoices.INVOICES:
        row = rows[invoice.number]
        amounts = [Decimal(str(round(row[name], 2))) for name in ("Fees", "VAT", "Gross")]
        assert amounts == [invoice.fees, invoice.vat, invoice.gross]
        assert (row["Status"] == "open") == invoice.is_open
    engaged = table(values(drive, "Finance/billing_2025.xlsx"), "By engagement")
    assert engaged["HP-2508"]["Left"] == pytest.approx(29_753.70)


def test_the_register_has_the_terms_of_the_letters_and_no_later_ones(drive: Path) -> None:
    rows = table(values(drive, "Finance/engagement_register.xlsx"), "Register")
    for code, terms in engagements.ENGAGEMENTS.items():
        assert round(1000 * rows[code]["Discount"]) == terms.discount_permille
        assert rows[code]["Basis"] == terms.basis
        assert (rows[code]["Fee or cap (GBP)"] or 0) == terms.fee
    assert engagements.discount_in("HP-2504", 12) == 180


def test_preliminary_timesheets_lack_just_the_late_hours(drive: Path) -> None:
    rows = table(values(drive, "Finance/timesheets_2025_preliminary.xlsx"), "By grade")
    for code in engagements.ENGAGEMENTS:
        late = sum(found for (late_code, _), found in hours.LATE.items() if late_code == code)
        assert rows[code]["Total"] == sum(extra.hours_to(code, 12).values()) - late


def test_expense_claims_add_up_to_the_invoices(drive: Path) -> None:
    rows = table(values(drive, "Finance/expenses_2025.xlsx"), "By month")
    for code in engagements.ENGAGEMENTS:
        charged = sum(found.expenses for found in invoices.INVOICES if found.code == code)
        assert rows[code]["Year"] == charged


def test_capacity_is_what_utilisation_is_measured_by(drive: Path) -> None:
    rows = table(values(drive, "People/capacity_2025.xlsx"), "Quarter")
    for practice in utilisation.PRACTICES:
        available = rows[practice]["Net of leave"] - utilisation.training_hours(practice)
        assert available == utilisation.available_hours(practice)


def test_the_tracker_has_the_cost_of_the_year(drive: Path) -> None:
    rows = table(
        values(drive, "Engagements/HP-2504_Merrowfield_Bank/budget_tracker.xlsx"), "Against budget"
    )
    assert rows["All"]["Cost"] == fees.year_cost("HP-2504")


def test_the_dashboard_has_the_fees_of_the_year(drive: Path) -> None:
    rows = table(values(drive, "Board/kpi_dashboard.xlsx"), "Board")
    total = sum(fees.year_fee(code) for code in engagements.ENGAGEMENTS)
    assert rows["Firm"]["Fees"] == pytest.approx(float(total))
    assert rows["Strategy"]["Utilisation Q4"] == pytest.approx(
        utilisation.second_version("Strategy") / 100
    )


def test_the_forecast_waits_for_the_extension(drive: Path) -> None:
    book = openpyxl.load_workbook(drive / "Finance/forecast_2026.xlsx")
    assert [book["Summary"][f"{letter}4"].value for letter in "BCDE"] == [None] * 4
    assert {cell.value for row in book["Lindale"]["C4:F7"] for cell in row} == {None}
    assert book["Assumptions"]["B4"].value == 0.05


def test_the_steering_pack_stands_at_november_with_the_first_budget(drive: Path) -> None:
    slides = Presentation(str(drive / DECKS[2])).slides
    shapes = {shape.name: shape for shape in slides[2].shapes}
    rows = [[cell.text for cell in row.cells] for row in shapes["Hours table"].table.rows]
    worked = extra.hours_to("HP-2508", 11)
    assert {row[0]: int(row[2]) for row in rows[1:-1]} == worked
    assert {row[0]: int(row[1]) for row in rows[1:-1]} == extra.PROPOSED_HOURS
    budget, shown = shapes["Hours chart"].chart.plots[0].series
    assert list(budget.values) == list(extra.PROPOSED_HOURS.values())
    assert list(shown.values) == list(worked.values())
    for grade, hours_budgeted in engagements.ENGAGEMENTS["HP-2508"].budget_hours.items():
        assert hours_budgeted != extra.PROPOSED_HOURS[grade]


@pytest.mark.parametrize("name", DECKS)
def test_a_deck_has_a_chart_a_table_a_group_and_notes(drive: Path, name: str) -> None:
    slides = Presentation(str(drive / name)).slides
    shapes = [shape for slide in slides for shape in slide.shapes]
    assert any(shape.has_chart for shape in shapes)
    assert any(shape.has_table for shape in shapes)
    assert any(shape.shape_type == 6 for shape in shapes)
    assert any(slide.has_notes_slide for slide in slides)


@pytest.mark.parametrize("name", DECKS)
def test_no_shape_lies_outside_its_slide(drive: Path, name: str) -> None:
    deck = Presentation(str(drive / name))
    for slide in deck.slides:
        for shape in slide.shapes:
            assert shape.left >= 0
            assert shape.left + shape.width <= deck.slide_width
            assert shape.top >= 0
            assert shape.top + shape.height <= deck.slide_height
