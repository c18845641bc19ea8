# SPDX-License-Identifier: Apache-2.0
import shutil
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("docx", reason="not run: office libraries absent")

from docx import Document

from .world_code import world_modules

STEADY = settings(deadline=None, derandomize=True)
TASK = "december-accruals"
ANSWER = "Finance/accruals_2025-12.docx"
CRITERIA = ("hours", "plain", "merrowfield", "skelwith", "total")
NONE = {"reward": 0.0, **dict.fromkeys(CRITERIA, 0)}
FULL = {"reward": 1.0, **dict.fromkeys(CRITERIA, 1)}

type Play = Any
"""`Play` of conftest.py."""
type Rows = list[list[str]]


@pytest.fixture(scope="module")
def verify(load_verifier: Callable[[str], ModuleType]) -> ModuleType:
    return load_verifier(TASK)


@pytest.fixture
def rows(verify: ModuleType) -> Rows:
    """The right table, to be spoilt."""
    return [list(row) for row in verify.solved()]


def write(path: Path, *tables: Rows) -> None:
    document = Document()
    document.add_heading("Accruals", level=1)
    for rows in tables:
        table = document.add_table(rows=0, cols=len(rows[0]))
        for row in rows:
            for cell, text in zip(table.add_row().cells, row, strict=True):
                cell.text = text
    document.save(str(path))


def failing(verify: ModuleType, folder: Path, *tables: Rows) -> set[str]:
    write(folder / "accruals.docx", *tables)
    marks = verify.judge(verify.read_tables(folder / "accruals.docx"))
    return {name for name, mark in marks.items() if not mark}


def put(row: int, column: int, text: str) -> Callable[[Rows], None]:
    def change(rows: Rows) -> None:
        rows[row][column] = text

    return change


def swap(rows: Rows) -> None:
    rows[1], rows[2] = rows[2], rows[1]


def test_the_verifier_judges_by_the_facts_of_the_world(verify: ModuleType) -> None:
    engagements, fees, hours = world_modules(
        "halden-pryce", ["facts.engagements", "facts.fees", "facts.hours"]
    )
    charged = {
        code: fees.fee(code, 12)
        for code, terms in engagements.ENGAGEMENTS.items()
        if terms.basis is not engagements.Basis.FIXED and hours.by_grade(code, 12)
    }
    assert {code: Decimal(pence) / 100 for code, pence in verify.PENCE.items()} == charged
    worked = {code: sum(hours.by_grade(code, 12).values()) for code in charged}
    assert worked == verify.HOURS


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


@pytest.mark.parametrize(
    "change",
    [
        put(1, 2, "£50,135.40"),
        put(1, 2, "50135.4"),
        put(1, 2, "GBP 50 135.40"),
        put(1, 0, "HP-2501 Tarnbrook Water"),
        put(8, 1, "1887"),
        put(8, 0, "total:"),
        put(0, 2, "ACCRUAL (GBP)"),
    ],
)
def test_another_way_to_write_it_counts(
    verify: ModuleType, rows: Rows, tmp_path: Path, change: Callable[[Rows], None]
) -> None:
    change(rows)
    assert failing(verify, tmp_path, rows) == set()


@pytest.mark.parametrize(
    ("change", "fails"),
    [
        (put(3, 2, "69,365.75"), {"merrowfield"}),  # the register's discount
        (put(3, 2, "56,817.80"), {"merrowfield"}),  # a promoted person at the old grade
        (put(3, 2, "54,111.80"), {"merrowfield"}),  # preliminary hours
        (put(6, 2, "51,051.40"), {"skelwith"}),  # no cap
        (put(6, 2, "0.00"), {"skelwith"}),
        (put(1, 2, "47,729.60"), {"plain"}),  # card 2025-A
        (put(1, 2, "50,135.41"), {"plain"}),
        (put(1, 2, "50,135"), {"plain"}),
        (put(1, 2, ""), {"plain"}),
        (put(1, 2, "50,135.40 or 50,135.41"), {"plain"}),
        (put(8, 2, "388,985.10"), {"total"}),
        (put(8, 0, "Sum"), {"hours", "total"}),
        (put(1, 1, "216"), {"hours"}),
        (put(6, 1, "219"), {"hours"}),
        (put(8, 1, "1,604"), {"hours"}),
        (put(0, 2, "Amount"), set(CRITERIA)),
        (put(1, 0, "Tarnbrook Water"), {"hours", "plain"}),
        (swap, {"hours"}),
        (lambda rows: rows.pop(), {"hours", "total"}),
        (lambda rows: rows.pop(3), {"hours", "merrowfield"}),
        (lambda rows: rows.insert(7, ["HP-2507", "174", "140,000.00"]), {"hours"}),
        (lambda rows: rows.insert(3, ["HP-2504", "304", "69,365.75"]), {"hours", "merrowfield"}),
        (lambda rows: rows.insert(4, ["HP-2504", "304", "69,365.75"]), {"hours", "merrowfield"}),
        (put(1, 0, "HP-2501, HP-2503"), {"hours", "plain"}),
    ],
)
def test_a_near_miss_loses_what_it_spoilt(
    verify: ModuleType,
    rows: Rows,
    tmp_path: Path,
    change: Callable[[Rows], object],
    fails: set[str],
) -> None:
    change(rows)
    assert failing(verify, tmp_path, rows) == fails


def test_an_answer_that_gives_two_tables_gives_none(
    verify: ModuleType, rows: Rows, tmp_path: Path
) -> None:
    other = [list(row) for row in rows]
    other[3][2] = "69,365.75"
    assert failing(verify, tmp_path, rows, other) == set(CRITERIA)


def test_a_table_of_something_else_does_no_harm(
    verify: ModuleType, rows: Rows, tmp_path: Path
) -> None:
    assert failing(verify, tmp_path, [["Prepared by", "Bea Lockwood"]], rows) == set()


def test_an_empty_table_earns_nothing(verify: ModuleType, rows: Rows, tmp_path: Path) -> None:
    assert failing(verify, tmp_path, rows[:1]) == set(CRITERIA)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def bomb(path: Path) -> None:
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("more.xml", b" " * (21 * 1024 * 1024))


def entities(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content.replace(b"<w:document ", b"<!DOCTYPE a><w:document ", 1))


def long(path: Path) -> None:
    document = Document(str(path))
    table = document.add_table(rows=1, cols=3)
    body = table._tbl
    for _ in range(6_000):
        body.append(body.tr_lst[0].__copy__())
    document.save(str(path))


@pytest.mark.parametrize(
    "spoil",
    [
        Path.unlink,
        folder,
        bomb,
        entities,
        long,
        lambda path: path.write_bytes(path.read_bytes()[:9_000]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text("HP-2501 246 50,135.40"),
        lambda path: shutil.rmtree(path.parent),
    ],
)
def test_a_spoilt_file_is_judged_and_earns_nothing(
    verify: ModuleType, rows: Rows, tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    path = tmp_path / "Finance/accruals.docx"
    path.parent.mkdir()
    write(path, rows)
    spoil(path)
    assert not any(verify.judge(verify.read_tables(path)).values())


def test_without_artifacts_there_is_no_verdict(play: Callable[[str], Play]) -> None:
    trial = play(TASK)
    shutil.rmtree(trial.files)
    assert "did not arrive" in trial.verify_fails()


@STEADY
@given(
    row=st.lists(
        st.one_of(
            st.text(st.sampled_from("HP-251Total0,.£GB "), max_size=14), st.just("50,135.40")
        ),
        max_size=4,
    )
)
def test_a_row_of_any_text_is_judged(verify: ModuleType, row: list[str]) -> None:
    marks = verify.judge([[*verify.solved(), row]])
    assert set(marks) == set(CRITERIA)


def test_verifiers_share_their_readers_word_for_word(verify: ModuleType) -> None:
    tasks = Path(verify.__file__).parents[2]
    for name, others in (
        ("verdict.py", ("lindale-forecast", "skelwith-pack")),
        ("parts.py", ("skelwith-pack",)),
    ):
        ours = (tasks / TASK / "tests" / name).read_bytes()
        for other in others:
            assert (tasks / other / "tests" / name).read_bytes() == ours
