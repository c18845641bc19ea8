# SPDX-License-Identifier: Apache-2.0
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("openpyxl", reason="not run: office libraries absent")

import openpyxl
from openpyxl import Workbook

STEADY = settings(deadline=None, derandomize=True)
TASK = "budget-tolls"
CRITERIA = ("diesel_price", "tolls", "tolls_total", "formulas_kept", "rest_intact")
NONE = {"reward": 0.0, **dict.fromkeys(CRITERIA, 0)}
FULL = {"reward": 1.0, **dict.fromkeys(CRITERIA, 1)}
TOLLS = (1252, 758, 573, 821, 693, 1145)


type Play = Any
"""`Play` of conftest.py."""


@pytest.fixture(scope="module")
def verify(load_verifier: Callable[[str], ModuleType]) -> ModuleType:
    return load_verifier(TASK)


@pytest.fixture
def book(documents: Path) -> Workbook:
    """The budget workbook, solved, to be spoilt."""
    found = openpyxl.load_workbook(documents / "planning/budget_2026.xlsx")
    found["Assumptions"]["B4"] = 1.482
    for row, tolls in enumerate(TOLLS, 4):
        found["Depots"][f"E{row}"] = tolls
    found["Depots"]["E10"] = "=SUM(E4:E9)"
    return found


def baseline(verify: ModuleType) -> dict[str, Any]:
    return json.loads(verify.BASELINE.read_text())


def failing(verify: ModuleType, book: Workbook) -> set[str]:
    marks = verify.judge(verify.take(book), baseline(verify))
    return {name for name, value in marks.items() if not value}


def put(sheet: str, cell: str, value: object) -> Callable[[Workbook], None]:
    def change(book: Workbook) -> None:
        book[sheet][cell] = value

    return change


def test_the_committed_baseline_is_the_untouched_workbook(
    verify: ModuleType, documents: Path
) -> None:
    found = verify.snapshot(documents / "planning/budget_2026.xlsx")
    assert json.loads(json.dumps(found)) == baseline(verify)


def test_the_untouched_world_earns_exactly_nothing(play: Callable[[str], Play]) -> None:
    assert play(TASK).verify() == NONE


def test_the_oracle_earns_the_full_reward(play: Callable[[str], Play]) -> None:
    trial = play(TASK)
    trial.solve()
    assert trial.verify() == FULL


def test_the_recorded_calls_earn_the_full_reward(play: Callable[[str], Play]) -> None:
    trial = play(TASK)
    trial.replay()
    assert trial.verify() == FULL


def test_saving_without_an_edit_earns_nothing(verify: ModuleType, documents: Path) -> None:
    book = openpyxl.load_workbook(documents / "planning/budget_2026.xlsx")
    assert failing(verify, book) == set(CRITERIA)


@pytest.mark.parametrize("formula", [
    "=SUM(E4:E9)", "=sum( $E$4 : $E$9 )", "=E4+E5+E6+E7+E8+E9", "=SUM(E4:E6)+SUM(E7:E9)",
    "=SUBTOTAL(9,E4:E9)", "=SUMPRODUCT(E4:E9)", "=ROUND(SUM(E4:E9),0)", "=SUM(Depots!E4:E9)",
    "=SUM(E4,E5,E6,E7,E8,E9)", "=+SUM(E4:E9)", "=(SUM(E4:E9))*100%", "=SUM(E3:E9)",
])  # fmt: skip
def test_any_formula_that_totals_the_tolls_counts(
    verify: ModuleType, book: Workbook, formula: str
) -> None:
    book["Depots"]["E10"] = formula
    assert failing(verify, book) == set()


@pytest.mark.parametrize("formula", [
    5242, "5242", "=5242", "=SUM(E4:E8)", "=SUM(F4:F9)", "=SUM(E4:E10)", "=G10-D10-F10", "=E4*6",
    "=SUM(E:E)", "=SUM(A1:XFD1048576)", "=SUM(", "=SUM(E4:E9)/0", "=", "=" + "(" * 250, "=}",
    "=MAX(E4:E9)", "=SUM(E4:E9)+0*E10", "=SUM(Tolls)", "=#REF!", "=E4:E9", "=SUM(E4:E9)E4",
    "=ROUND(E4:E9,0)",
])  # fmt: skip
def test_what_is_no_total_of_the_tolls_does_not_count(
    verify: ModuleType, book: Workbook, formula: object
) -> None:
    book["Depots"]["E10"] = formula
    assert failing(verify, book) == {"tolls_total"}


@pytest.mark.parametrize(
    ("change", "fails"),
    [
        (put("Assumptions", "B4", 1.395), {"diesel_price"}),
        (put("Assumptions", "B4", 1.431), {"diesel_price"}),
        (put("Assumptions", "B4", "1.482"), {"diesel_price"}),
        (put("Depots", "E4", None), {"tolls"}),
        (put("Depots", "E4", "1252"), {"tolls"}),
        (put("Depots", "E4", 1252_000), {"tolls"}),
        (put("Depots", "E4", True), {"tolls"}),
        (put("Depots", "E5", 827), {"tolls"}),
        (put("Depots", "E4", 1164), {"tolls"}),
        (put("Depots", "D4", "=C4*1.482"), {"formulas_kept"}),
        (put("Depots", "D4", 2715), {"formulas_kept", "rest_intact"}),
        (put("Depots", "G10", None), {"formulas_kept", "rest_intact"}),
        (put("Depots", "B4", 5900), {"rest_intact"}),
        (put("Depots", "A4", "Northaven"), {"rest_intact"}),
        (put("Summary", "D4", "checked"), {"rest_intact"}),
        (put("Assumptions", "B7", 0.03), {"rest_intact"}),
        (lambda book: book.remove(book["Notes"]), {"rest_intact"}),
        (lambda book: book.create_sheet("Scratch"), {"rest_intact"}),
        (lambda book: book.move_sheet("Notes", -3), {"rest_intact"}),
        (lambda book: book["Depots"].unmerge_cells("A1:G1"), {"rest_intact"}),
        (lambda book: setattr(book["Depots"], "freeze_panes", None), {"rest_intact"}),
        (lambda book: setattr(book["Depots"]["B4"], "number_format", "0"), {"rest_intact"}),
        (lambda book: book.defined_names.clear(), {"rest_intact"}),
        (
            lambda book: setattr(book["Assumptions"].data_validations, "dataValidation", []),
            {"rest_intact"},
        ),
        (lambda book: book["Depots"].delete_rows(9), set(CRITERIA) - {"diesel_price"}),
        (lambda book: setattr(book["Depots"], "title", "Depot"), set(CRITERIA) - {"diesel_price"}),
        (lambda book: book.remove(book["Depots"]), set(CRITERIA) - {"diesel_price"}),
    ],
)
def test_a_near_miss_loses_what_it_spoilt(
    verify: ModuleType, book: Workbook, change: Callable[[Workbook], object], fails: set[str]
) -> None:
    change(book)
    assert failing(verify, book) == fails


def test_tolls_without_rounding_count(verify: ModuleType, book: Workbook) -> None:
    for cell, tolls in verify.TOLLS.items():
        book["Depots"][cell] = tolls
    assert failing(verify, book) == set()


def test_one_edit_alone_gets_its_part(verify: ModuleType, documents: Path) -> None:
    book = openpyxl.load_workbook(documents / "planning/budget_2026.xlsx")
    book["Assumptions"]["B4"] = 1.482
    assert failing(verify, book) == {"tolls", "tolls_total"}


def test_a_spreadsheet_programs_own_formatting_of_formulas_is_no_change(
    verify: ModuleType, book: Workbook
) -> None:
    book["Depots"]["D4"] = "= C4 * dieselprice"
    assert failing(verify, book) == set()


def bomb(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b"\0" * (11 * 1024 * 1024))


def without_sheet(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            if "sheet2.xml" not in name:
                archive.writestr(name, content)


def far_cell(path: Path) -> None:
    book = openpyxl.load_workbook(path)
    book["Depots"]["XFD1048576"] = 1
    book.save(path)


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5_000])


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "spoil",
    [
        Path.unlink,
        folder,
        truncated,
        bomb,
        far_cell,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text("E10 = 5242"),
        lambda path: shutil.rmtree(path.parent),
    ],
)
def test_a_spoilt_file_is_judged_and_earns_nothing(
    verify: ModuleType, book: Workbook, tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    path = tmp_path / "planning/budget.xlsx"
    path.parent.mkdir()
    book.save(path)
    spoil(path)
    assert not any(verify.judge(verify.read_workbook(path), baseline(verify)).values())


def test_a_file_without_one_of_its_sheets_is_judged(
    verify: ModuleType, book: Workbook, tmp_path: Path
) -> None:
    book.save(tmp_path / "budget.xlsx")
    without_sheet(tmp_path / "budget.xlsx")
    marks = verify.judge(verify.read_workbook(tmp_path / "budget.xlsx"), baseline(verify))
    assert sum(marks.values()) == marks["diesel_price"] == 1


def test_a_deleted_workbook_earns_nothing_end_to_end(play: Callable[[str], Play]) -> None:
    trial = play(TASK)
    (trial.files / "planning/budget_2026.xlsx").unlink()
    assert trial.verify() == NONE


@STEADY
@given(data=st.data())
def test_a_file_with_flipped_bytes_is_judged(
    verify: ModuleType,
    documents: Path,
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
) -> None:
    content = bytearray((documents / "planning/budget_2026.xlsx").read_bytes())
    places = data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=8))
    for place in places:
        content[place] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.mktemp("flip") / "budget.xlsx"
    path.write_bytes(content)
    marks = verify.judge(verify.read_workbook(path), baseline(verify))
    assert set(marks.values()) <= {0, 1}


@STEADY
@given(st.text(st.sampled_from(list("=SUMROUNDE49:,+-*/%()$!'\"{}[]#& .;<>^A1")), max_size=40))
def test_any_formula_text_is_judged(verify: ModuleType, text: str) -> None:
    found = baseline(verify)
    found["sheets"]["Depots"]["cells"]["E10"] = ["=" + text, "0", False]
    assert verify.is_total(found) in (True, False)


@pytest.mark.parametrize("value", [10**400, float("inf"), float("nan"), -1e308, "1" * 9_999])
def test_a_monstrous_number_is_judged(verify: ModuleType, value: object) -> None:
    found = baseline(verify)
    for cell in ("E4", "B4", "E10"):
        found["sheets"]["Depots"]["cells"][cell] = [value, "0", False]
    assert not any(verify.judge(found, baseline(verify)).values())


def test_no_reward_where_the_world_did_not_arrive(play: Callable[[str], Play]) -> None:
    trial = play(TASK)
    shutil.rmtree(trial.files)
    assert "did not arrive" in trial.verify_fails()


def test_the_oracle_touches_no_other_document(play: Callable[[str], Play], documents: Path) -> None:
    trial = play(TASK)
    trial.solve()
    for path in documents.rglob("*"):
        if path.is_file() and path.suffix != ".xlsx":
            assert (trial.files / path.relative_to(documents)).read_bytes() == path.read_bytes()
