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

from .world_code import world_modules

STEADY = settings(deadline=None, derandomize=True)
TASK = "lindale-forecast"
CRITERIA = ("discount", "rates", "hours", "linked", "rest_intact")
NONE = {"reward": 0.0, **dict.fromkeys(CRITERIA, 0)}
FULL = {"reward": 1.0, **dict.fromkeys(CRITERIA, 1)}

type Play = Any
"""`Play` of conftest.py."""


@pytest.fixture(scope="module")
def verify(load_verifier: Callable[[str], ModuleType]) -> ModuleType:
    return load_verifier(TASK)


@pytest.fixture(scope="module")
def untouched(made: Callable[[str], Path]) -> Path:
    return made(TASK) / "filesystem/Finance/forecast_2026.xlsx"


@pytest.fixture
def book(untouched: Path, verify: ModuleType) -> Workbook:
    """The workbook, solved, to be spoilt."""
    found = openpyxl.load_workbook(untouched)
    found["Assumptions"]["B4"] = 0.075
    for cell, rate in verify.RATES.items():
        found["Assumptions"][cell] = rate
    for cell, hours in verify.HOURS.items():
        found["Lindale"][cell] = hours
    for cell, column in verify.LINKS.items():
        found["Summary"][cell] = f"=Lindale!{column}11"
    return found


def baseline(verify: ModuleType) -> dict[str, Any]:
    return json.loads(verify.BASELINE.read_text())


def failing(verify: ModuleType, book: Workbook, folder: Path) -> set[str]:
    book.save(folder / "forecast.xlsx")
    marks = verify.judge(verify.read_workbook(folder / "forecast.xlsx"), baseline(verify))
    return {name for name, mark in marks.items() if not mark}


def put(sheet: str, cell: str, value: object) -> Callable[[Workbook], None]:
    def change(book: Workbook) -> None:
        book[sheet][cell] = value

    return change


def put_all(sheet: str, cells: dict[str, object]) -> Callable[[Workbook], None]:
    def change(book: Workbook) -> None:
        for cell, value in cells.items():
            book[sheet][cell] = value

    return change


def links(row: int) -> dict[str, object]:
    return {f"{cell}4": f"=Lindale!{column}{row}" for cell, column in zip("BCDE", "CDEF")}  # noqa: B905


def test_the_committed_baseline_is_the_untouched_workbook(
    verify: ModuleType, untouched: Path
) -> None:
    assert json.loads(json.dumps(verify.snapshot(untouched))) == baseline(verify)


def test_the_verifier_judges_by_the_facts_of_the_world(verify: ModuleType) -> None:
    outlook, rates = world_modules("halden-pryce", ["facts.outlook", "facts.rates"])
    assert verify.DISCOUNT[2] == outlook.DISCOUNT_PERMILLE / 1000
    assert list(verify.RATES.values()) == list(rates.CARD_2026.values())
    quarters = list(outlook.EXTENSION_HOURS.values())
    assert list(verify.HOURS.values()) == [hours for grade in quarters for hours in grade]


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


def test_saving_without_an_edit_earns_nothing(
    verify: ModuleType, untouched: Path, tmp_path: Path
) -> None:
    assert failing(verify, openpyxl.load_workbook(untouched), tmp_path) == set(CRITERIA)


@pytest.mark.parametrize("formula", [
    "=Lindale!C11", "='Lindale'!$C$11", "= lindale!c11", "=+Lindale!C11", "=Lindale!C9+Lindale!C10",
    "=Lindale!C9*(1-LindaleDiscount)", "=SUM(Lindale!C9:C10)", "=ROUND(Lindale!C11,0)",
    "=SUMPRODUCT(Lindale!$B$4:$B$7,Lindale!C4:C7)*(1-Assumptions!$B$4)", "=Lindale!C11*100%",
    "=Lindale!C9 - Lindale!C9 * Assumptions!B4", "=--Lindale!C11",
])  # fmt: skip
def test_any_formula_that_follows_the_fees_counts(
    verify: ModuleType, book: Workbook, tmp_path: Path, formula: str
) -> None:
    book["Summary"]["B4"] = formula
    assert failing(verify, book, tmp_path) == set()


@pytest.mark.parametrize("formula", [
    None, 258_861.75, "258861.75", "=258861.75", "=Lindale!C9", "=Lindale!D11", "=Lindale!G11",
    "=Lindale!C11*(1-LindaleDiscount)", "=Lindale!C11+0.4*Lindale!C4", "=F4", "=B4", "=Others!C4",
    "=SUM(", "=", "=)", "=Lindale!C11/0", "=Lindale!C9:C11", "=Lindale!C11 Lindale!C11", "=#REF!",
    "=SUM(Lindale!A1:XFD1048576)", "=" + "(" * 250, "=INDIRECT(\"Lindale!C11\")", "=Nowhere!C11",
    "=Lindale!A11", "=" + "-" * 299 + "1", "=NoName", "=Lindale!C11&\"\"",
])  # fmt: skip
def test_what_does_not_follow_the_fees_does_not_count(
    verify: ModuleType, book: Workbook, tmp_path: Path, formula: object
) -> None:
    book["Summary"]["B4"] = formula
    assert failing(verify, book, tmp_path) == {"linked"}


@pytest.mark.parametrize(
    ("change", "fails"),
    [
        (put("Assumptions", "B4", 0.06), {"discount"}),
        (put("Assumptions", "B4", 0.05), {"discount"}),
        (put("Assumptions", "B4", 7.5), {"discount"}),
        (put("Assumptions", "B4", "7.5 %"), {"discount"}),
        (put("Assumptions", "B4", "=0.075"), {"discount"}),
        (put("Assumptions", "B5", 440), {"rates"}),
        (put("Assumptions", "B7", "285"), {"rates"}),
        (
            put_all(
                "Assumptions", {f"B{n}": r for n, r in enumerate((440, 350, 275, 200, 135), 5)}
            ),
            {"rates"},
        ),
        (put("Lindale", "C4", None), {"hours"}),
        (put("Lindale", "F7", 120), {"hours"}),
        (put("Lindale", "D6", "395"), {"hours"}),
        (put("Lindale", "D6", True), {"hours"}),
        (put_all("Summary", {"B4": 258861.75, "C4": 258_000}), {"linked"}),
        (put_all("Summary", links(9)), {"linked"}),
        (put_all("Summary", dict.fromkeys(("B4", "C4", "D4", "E4"))), {"linked"}),
        (put("Lindale", "C11", "=C9"), {"linked", "rest_intact"}),
        (put("Lindale", "C9", 279_850), {"linked", "rest_intact"}),
        (put("Lindale", "G11", "=SUM(C11:F11)"), {"rest_intact"}),
        (put("Summary", "F4", 900_000), {"rest_intact"}),
        (put("Summary", "B11", 950_000), {"rest_intact"}),
        (put("Summary", "G4", "checked"), {"rest_intact"}),
        (put("Assumptions", "D4", "mail of 8 January"), {"rest_intact"}),
        (put("Log", "A5", "2026-01-12"), {"rest_intact"}),
        (lambda book: setattr(book["Log"], "sheet_state", "visible"), {"rest_intact"}),
        (lambda book: setattr(book["Assumptions"]["B4"], "comment", None), {"rest_intact"}),
        (lambda book: setattr(book["Others"]["C4"], "number_format", "0"), {"rest_intact"}),
        (lambda book: setattr(book["Summary"], "freeze_panes", None), {"rest_intact"}),
        (lambda book: book.defined_names.clear(), {"linked", "rest_intact"}),
        (lambda book: book.create_sheet("Scratch"), {"rest_intact"}),
        (lambda book: book.remove(book["Log"]), {"rest_intact"}),
        (lambda book: book.move_sheet("Log", -2), {"rest_intact"}),
        (lambda book: setattr(book["Summary"], "title", "Total"), {"linked", "rest_intact"}),
        (lambda book: book["Others"].merge_cells("A20:B20"), {"rest_intact"}),
        (lambda book: book["Lindale"].delete_rows(5), {"hours", "linked", "rest_intact"}),
    ],
)
def test_a_near_miss_loses_what_it_spoilt(
    verify: ModuleType,
    book: Workbook,
    tmp_path: Path,
    change: Callable[[Workbook], object],
    fails: set[str],
) -> None:
    change(book)
    assert failing(verify, book, tmp_path) == fails


def test_one_edit_alone_gets_its_part(verify: ModuleType, untouched: Path, tmp_path: Path) -> None:
    book = openpyxl.load_workbook(untouched)
    book["Assumptions"]["B4"] = 0.075
    assert failing(verify, book, tmp_path) == {"rates", "hours", "linked"}


def bomb(path: Path) -> None:
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("more.xml", b" " * (11 * 1024 * 1024))


def entities(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content.replace(b"<worksheet ", b"<!DOCTYPE a><worksheet ", 1))


def without_sheet(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            if "sheet2.xml" not in name:
                archive.writestr(name, content)


def many_cells(path: Path) -> None:
    book = openpyxl.load_workbook(path)
    for row in range(1, 2_200):
        book["Others"].append([row] * 10)
    book.save(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "spoil",
    [
        Path.unlink,
        folder,
        bomb,
        entities,
        without_sheet,
        many_cells,
        lambda path: path.write_bytes(path.read_bytes()[:5_000]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text("B4 = 0.075"),
        lambda path: shutil.rmtree(path.parent),
    ],
)
def test_a_spoilt_file_is_judged_and_earns_nothing(
    verify: ModuleType, book: Workbook, tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    path = tmp_path / "Finance/forecast.xlsx"
    path.parent.mkdir()
    book.save(path)
    spoil(path)
    assert not any(verify.judge(verify.read_workbook(path), baseline(verify)).values())


def test_a_deleted_workbook_earns_nothing_end_to_end(play: Callable[[str], Play]) -> None:
    trial = play(TASK)
    (trial.files / "Finance/forecast_2026.xlsx").unlink()
    assert trial.verify() == NONE


def test_without_artifacts_there_is_no_verdict(play: Callable[[str], Play]) -> None:
    trial = play(TASK)
    shutil.rmtree(trial.files)
    assert "did not arrive" in trial.verify_fails()


@STEADY
@given(data=st.data())
def test_a_file_with_flipped_bytes_is_judged(
    verify: ModuleType,
    untouched: Path,
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
) -> None:
    content = bytearray(untouched.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.mktemp("flipped") / "forecast.xlsx"
    path.write_bytes(bytes(content))
    marks = verify.judge(verify.read_workbook(path), baseline(verify))
    assert set(marks) == set(CRITERIA)


@STEADY
@given(formula=st.text(st.sampled_from("=SUMROND(Lindale!C11:$)+-*/%,' 0.79"), max_size=40))
def test_a_formula_of_any_text_is_judged(verify: ModuleType, formula: str) -> None:
    found = verify.solved(baseline(verify))
    found["sheets"]["Summary"]["cells"]["B4"][0] = f"={formula}"
    assert set(verify.judge(found, baseline(verify))) == set(CRITERIA)
