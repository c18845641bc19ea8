# SPDX-License-Identifier: Apache-2.0
import json
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pptx", reason="not run: office libraries absent")

from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.util import Emu

from .world_code import world_modules

STEADY = settings(deadline=None, derandomize=True, max_examples=60)
TASK = "skelwith-pack"
DECK = "Engagements/HP-2508_Skelwith_Energy/steering_pack_2025-12.pptx"
CRITERIA = ("title", "table", "chart", "hours_used", "rest_intact")
NONE = {"reward": 0.0, **dict.fromkeys(CRITERIA, 0)}
FULL = {"reward": 1.0, **dict.fromkeys(CRITERIA, 1)}
GRADES = ("Partner", "Manager", "Consultant", "Analyst")
BUDGET, WORKED = (270, 800, 860, 920), (283, 842, 910, 964)

type Play = Any
"""`Play` of conftest.py."""
type Deck = Any
"""An open presentation."""


@pytest.fixture(scope="module")
def verify(load_verifier: Callable[[str], ModuleType]) -> ModuleType:
    return load_verifier(TASK)


@pytest.fixture(scope="module")
def untouched(made: Callable[[str], Path]) -> Path:
    return made(TASK) / "filesystem" / DECK


def named(shapes: Any, name: str) -> Any:
    (found,) = [shape for shape in shapes if shape.name == name]
    return found


def title(text: str) -> Callable[[Deck], None]:
    def change(deck: Deck) -> None:
        deck.slides[2].shapes.title.text = text

    return change


def table(budget: tuple[int, ...], worked: tuple[int, ...]) -> Callable[[Deck], None]:
    def change(deck: Deck) -> None:
        rows = list(zip(budget, worked, strict=True))
        rows.append((sum(budget), sum(worked)))
        cells = named(deck.slides[2].shapes, "Hours table").table
        for number, (planned, done) in enumerate(rows, 1):
            for column, hours in enumerate((planned, done, planned - done), 1):
                cells.cell(number, column).text = str(hours)

    return change


def cell(row: int, column: int, text: str) -> Callable[[Deck], None]:
    def change(deck: Deck) -> None:
        named(deck.slides[2].shapes, "Hours table").table.cell(row, column).text = text

    return change


def chart(
    budget: tuple[int, ...],
    worked: tuple[int, ...],
    names: tuple[str, ...] = ("Budget", "Worked"),
    grades: tuple[str, ...] = GRADES,
) -> Callable[[Deck], None]:
    def change(deck: Deck) -> None:
        data = CategoryChartData()
        data.categories = grades
        for name, hours in zip(names, (budget, worked, worked), strict=False):
            data.add_series(name, hours)
        named(deck.slides[2].shapes, "Hours chart").chart.replace_data(data)

    return change


def box(text: str) -> Callable[[Deck], None]:
    def change(deck: Deck) -> None:
        group = named(deck.slides[3].shapes, "Status")
        named(group.shapes, "Hours used").text_frame.text = text

    return change


def drop(slide: int, name: str) -> Callable[[Deck], None]:
    def change(deck: Deck) -> None:
        element = named(deck.slides[slide].shapes, name)._element
        element.getparent().remove(element)

    return change


def ungroup(deck: Deck) -> None:
    group = named(deck.slides[3].shapes, "Status")._element
    for shape in list(group)[2:]:
        group.addprevious(shape)
    group.getparent().remove(group)


def drop_slide(deck: Deck) -> None:
    ids = deck.slides._sldIdLst
    ids.remove(ids[4])


def swap_slides(deck: Deck) -> None:
    ids = deck.slides._sldIdLst
    ids.insert(0, ids[4])


def solve(deck: Deck) -> None:
    title("Hours against budget at 31 December 2025")(deck)
    table(BUDGET, WORKED)(deck)
    chart(BUDGET, WORKED)(deck)
    box("105 % of budgeted hours used")(deck)


def failing(verify: ModuleType, untouched: Path, folder: Path, *changes: Any) -> set[str]:
    deck = Presentation(str(untouched))
    for change in changes:
        change(deck)
    deck.save(str(folder / "pack.pptx"))
    return missed(verify, folder / "pack.pptx")


def missed(verify: ModuleType, path: Path) -> set[str]:
    baseline = json.loads(verify.BASELINE.read_text())
    marks = verify.judge(verify.read_deck(path), baseline)
    return {name for name, mark in marks.items() if not mark}


def test_the_committed_baseline_is_the_untouched_deck(verify: ModuleType, untouched: Path) -> None:
    found = json.loads(json.dumps(verify.snapshot(untouched)))
    assert found == json.loads(verify.BASELINE.read_text())


def test_the_verifier_judges_by_the_facts_of_the_world(verify: ModuleType) -> None:
    engagements, office = world_modules("halden-pryce", ["facts.engagements", "facts.office"])
    assert engagements.ENGAGEMENTS["HP-2508"].budget_hours == verify.BUDGET
    assert office.hours_to("HP-2508", 12) == verify.WORKED


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
    assert failing(verify, untouched, tmp_path) == set(CRITERIA)


@pytest.mark.parametrize(
    "change",
    [
        cell(1, 3, "\N{MINUS SIGN}13"),
        cell(1, 3, "(13)"),
        cell(5, 1, "2,850"),
        cell(5, 2, " 2 999 "),
        box("105% of budgeted hours used"),
        box("105.2 % of budgeted hours used."),
    ],
)
def test_another_way_to_write_a_number_counts(
    verify: ModuleType, untouched: Path, tmp_path: Path, change: Callable[[Deck], None]
) -> None:
    assert failing(verify, untouched, tmp_path, solve, change) == set()


@pytest.mark.parametrize(
    ("change", "fails"),
    [
        (table(BUDGET, (283, 842, 886, 964)), {"table"}),
        (table((240, 760, 900, 880), WORKED), {"table"}),
        (table(BUDGET, (260, 771, 840, 885)), {"table"}),
        (cell(1, 3, "13"), {"table"}),
        (cell(5, 3, "149"), {"table"}),
        (cell(4, 2, ""), {"table"}),
        (cell(4, 2, "964 hours"), {"table"}),
        (cell(0, 1, "Proposed"), {"table"}),
        (cell(2, 0, "Managers"), {"table"}),
        (chart(BUDGET, (283, 842, 886, 964)), {"chart"}),
        (chart((240, 760, 900, 880), WORKED), {"chart"}),
        (chart(WORKED, BUDGET), {"chart"}),
        (chart(BUDGET, WORKED, ("Budget",)), {"chart"}),
        (chart(BUDGET, WORKED, ("Budget", "Hours")), {"chart"}),
        (chart(BUDGET, WORKED, ("Budget", "Worked", "Left")), {"chart"}),
        (chart(BUDGET, WORKED, grades=("Manager", "Partner", *GRADES[2:])), {"chart"}),
        (box("104 % of budgeted hours used"), {"hours_used"}),
        (box("108 % of budgeted hours used"), {"hours_used"}),
        (box("105 % used"), {"hours_used"}),
        (box("104 or 105 % of budgeted hours used"), {"hours_used"}),
        (title("Hours against budget at 30 November 2025"), {"title"}),
        (title("Hours at year end"), {"title"}),
        (drop(2, "Hours chart"), {"chart", "rest_intact"}),
        (drop(2, "Hours table"), {"table", "rest_intact"}),
        (drop(2, "Source"), {"rest_intact"}),
        (ungroup, {"hours_used", "rest_intact"}),
        (lambda deck: deck.slides.add_slide(deck.slide_layouts[6]), {"rest_intact"}),
        (drop_slide, {"rest_intact"}),
        (swap_slides, set(CRITERIA)),
        (
            lambda deck: setattr(deck.slides[2].notes_slide.notes_text_frame, "text", "Done."),
            {"rest_intact"},
        ),
        (
            lambda deck: setattr(deck.slides[3].notes_slide.notes_text_frame, "text", ""),
            {"rest_intact"},
        ),
        (
            lambda deck: setattr(named(deck.slides[2].shapes, "Hours chart"), "left", Emu(0)),
            {"rest_intact"},
        ),
        (
            lambda deck: setattr(named(deck.slides[2].shapes, "Hours table"), "name", "Table 2"),
            {"table", "rest_intact"},
        ),
        (
            lambda deck: setattr(named(deck.slides[2].shapes, "Source"), "name", "Hours table"),
            {"table", "rest_intact"},
        ),
        (
            lambda deck: setattr(named(deck.slides[4].shapes, "Title 1"), "name", "Risks"),
            {"rest_intact"},
        ),
        (
            lambda deck: setattr(deck.slides[0].placeholders[1], "text", "January 2026"),
            {"rest_intact"},
        ),
        (
            lambda deck: setattr(
                named(named(deck.slides[3].shapes, "Status").shapes, "Cap charged").text_frame,
                "text",
                "100 % of the cap charged",
            ),
            {"rest_intact"},
        ),
        (lambda deck: deck.slides[4]._element.set("show", "0"), {"rest_intact"}),
    ],
)
def test_a_near_miss_loses_what_it_spoilt(
    verify: ModuleType,
    untouched: Path,
    tmp_path: Path,
    change: Callable[[Deck], object],
    fails: set[str],
) -> None:
    assert failing(verify, untouched, tmp_path, solve, change) == fails


def rewrite(path: Path, part: str, change: Callable[[bytes], bytes]) -> None:
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, change(content) if re.search(part, name) else content)


def test_a_picture_of_a_chart_is_no_chart(
    verify: ModuleType, untouched: Path, tmp_path: Path
) -> None:
    """The shown numbers are right, the workbook behind them is the old one."""
    path = tmp_path / "pack.pptx"
    assert failing(verify, untouched, tmp_path, solve) == set()
    with zipfile.ZipFile(untouched) as archive:
        (old,) = [name for name in archive.namelist() if name.endswith(".xlsx")]
        behind = archive.read(old)
    rewrite(path, r"\.xlsx$", lambda _: behind)
    assert missed(verify, path) == {"chart"}
    rewrite(path, r"\.xlsx$", lambda _: b"PK")
    assert missed(verify, path) == {"chart"}


def test_a_chart_that_shows_other_numbers_than_its_workbook_is_wrong(
    verify: ModuleType, untouched: Path, tmp_path: Path
) -> None:
    failing(verify, untouched, tmp_path, solve)
    shown = re.compile(rb"(<c:v>)910(?:\.0)?(</c:v>)")
    rewrite(tmp_path / "pack.pptx", "charts/chart", lambda xml: shown.sub(rb"\g<1>886\2", xml))
    assert missed(verify, tmp_path / "pack.pptx") == {"chart"}


def test_one_edit_alone_gets_its_part(verify: ModuleType, untouched: Path, tmp_path: Path) -> None:
    found = failing(verify, untouched, tmp_path, table(BUDGET, WORKED))
    assert found == {"title", "chart", "hours_used"}


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def bomb(path: Path) -> None:
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("more.xml", b" " * (21 * 1024 * 1024))


@pytest.mark.parametrize(
    "spoil",
    [
        Path.unlink,
        folder,
        bomb,
        lambda path: rewrite(path, "slide3.xml$", lambda _: b"<a/>"),
        lambda path: rewrite(
            path, "slide3.xml$", lambda text: text.replace(b"<p:sld ", b"<!DOCTYPE a><p:sld ", 1)
        ),
        lambda path: path.write_bytes(path.read_bytes()[:9_000]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text("105 %"),
        lambda path: shutil.rmtree(path.parent),
    ],
)
def test_a_spoilt_file_is_judged_and_earns_nothing(
    verify: ModuleType, untouched: Path, tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    place = tmp_path / "Skelwith"
    place.mkdir()
    failing(verify, untouched, place, solve)
    spoil(place / "pack.pptx")
    assert missed(verify, place / "pack.pptx") == set(CRITERIA)


def test_a_deleted_deck_earns_nothing_end_to_end(play: Callable[[str], Play]) -> None:
    trial = play(TASK)
    (trial.files / DECK).unlink()
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
    path = tmp_path_factory.mktemp("flipped") / "pack.pptx"
    path.write_bytes(bytes(content))
    assert missed(verify, path) <= set(CRITERIA)
