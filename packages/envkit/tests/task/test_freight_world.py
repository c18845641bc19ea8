# SPDX-License-Identifier: Apache-2.0
import csv
import filecmp
import io
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("pdfplumber", reason="not run: office libraries absent")

import openpyxl
import pdfplumber

from envkit.task import World, materialize


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text())))


def results(documents: Path) -> dict[str, list[int]]:
    with pdfplumber.open(documents / "results/segment_results_2025.pdf") as pdf:
        _, *body = pdf.pages[0].extract_table()
    return {label: [amount(text) for text in cells] for label, *cells in body}


def amount(text: str) -> int:
    digits = "".join(filter(str.isdigit, text))
    return int(digits or 0) * (-1 if text.startswith("(") else 1)


def test_two_runs_write_the_same_bytes(world: World, documents: Path, tmp_path: Path) -> None:
    again = materialize(world, tmp_path) / "filesystem"
    names = sorted(path.relative_to(documents) for path in documents.rglob("*") if path.is_file())
    assert names == sorted(p.relative_to(again) for p in again.rglob("*") if p.is_file())
    _, differing, missing = filecmp.cmpfiles(documents, again, names, shallow=False)
    assert (differing, missing) == ([], [])


@pytest.mark.parametrize(
    "name", ["planning/budget_2026.xlsx", "operations/fuel_contract_2026.docx"]
)
def test_no_clock_is_left_in_an_office_file(documents: Path, name: str) -> None:
    with zipfile.ZipFile(documents / name) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        core = archive.read("docProps/core.xml").decode()
    assert core.count("2026-01-05T08:00:00Z") == core.count("<dcterms:") == 2


def test_no_clock_is_left_in_a_pdf(documents: Path) -> None:
    for path in documents.rglob("*.pdf"):
        with pdfplumber.open(path) as pdf:
            assert pdf.metadata["CreationDate"].startswith("D:2000")


def test_there_are_a_dozen_documents_of_the_promised_kinds(documents: Path) -> None:
    kinds = [path.suffix for path in documents.rglob("*") if path.is_file()]
    assert len(kinds) >= 12
    assert {".pdf", ".xlsx", ".docx", ".csv", ".md", ".txt"} == set(kinds)


def test_the_note_in_force_has_two_columns_of_prose(documents: Path) -> None:
    with pdfplumber.open(documents / "policies/FN-2025-07_adjusted_ebitda.pdf") as pdf:
        (page,) = pdf.pages
        body = [word for word in page.extract_words() if word["top"] > 120]
        middle = page.width / 2
    assert not [word for word in body if word["x0"] < middle < word["x1"]]
    left = [word for word in body if word["x1"] <= middle]
    assert min(len(left), len(body) - len(left)) > 80


def test_segments_add_up_to_the_group(documents: Path) -> None:
    for cells in results(documents).values():
        assert sum(cells[:-1]) == cells[-1]


def test_quarters_add_up_to_the_year(documents: Path) -> None:
    revenue = results(documents)["Revenue"]
    quarters = rows(documents / "results/revenue_by_quarter.csv")
    assert [sum(int(row[f"Q{n}"]) for n in (1, 2, 3, 4)) for row in quarters] == revenue[:3]


def test_kilometres_of_the_budget_are_those_of_the_planned_routes(documents: Path) -> None:
    book = openpyxl.load_workbook(documents / "planning/budget_2026.xlsx")
    budget = {row[0].value: row[1].value * 1_000 for row in book["Depots"]["A4:B9"]}
    planned = dict.fromkeys(budget, 0)
    for row in rows(documents / "operations/route_km_2026.csv"):
        planned[row["depot"]] += int(row["km"]) if row["status"] == "planned" else 0
    assert planned == budget


def test_values_beside_the_formulas_are_what_the_formulas_give(documents: Path) -> None:
    book = openpyxl.load_workbook(documents / "planning/budget_2026.xlsx", data_only=True)
    price, use, drivers, inflation = (book["Assumptions"][f"B{row}"].value for row in range(4, 8))
    depots = [[cell.value for cell in row] for row in book["Depots"]["B4:G10"]]
    for km, litres, fuel, tolls, drive, total in depots[:-1]:
        assert tolls is None
        expected = [km * use / 100, km * use / 100 * price, km * drivers]
        assert [litres, fuel, drive] == pytest.approx(expected)
        assert total == pytest.approx(fuel + drive)
    for column in (0, 1, 2, 4, 5):
        assert depots[-1][column] == pytest.approx(sum(row[column] for row in depots[:-1]))
    summary = [book["Summary"][f"B{row}"].value for row in range(4, 10)]
    assert summary[3] == pytest.approx(8_400 * (1 + inflation))
    assert summary[4] == pytest.approx(sum(summary[:4]))
    assert summary[5] == pytest.approx(summary[4] / depots[-1][0])


def test_the_decoy_contradicts_and_says_that_it_is_a_draft(documents: Path) -> None:
    note = (documents / "board/fy2025_first_look.md").read_text()
    assert "17.1 %" in note
    assert "draft note FN-2025-04" in note
    with pdfplumber.open(documents / "policies/FN-2025-04_adjusted_ebitda_draft.pdf") as pdf:
        assert "Draft for comment" in pdf.pages[0].extract_text()
