# SPDX-License-Identifier: Apache-2.0
"""PDF pages as the model reads them: order, tables, blanks, forms, what cannot be read."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reportlab.lib import colors
from reportlab.lib.pagesizes import letter
from reportlab.pdfgen import canvas

from envkit.servers.desk import Desk
from envkit.servers.pdf.searching import matches, pattern, reduced

from .conftest import call
from .documents import HEIGHT, ROWS, plain_table_pdf, table_pdf, text_pdf, two_column_pdf

READ, SEARCH = "pdf_server_read_pdf_pages", "pdf_server_search_pdf"


def page(desk: Desk, path: str, **arguments: object) -> str:
    reply = call(desk, READ, {"file_path": path, **arguments})
    assert not reply.is_error, reply.texts
    return reply.texts[0]


@pytest.mark.parametrize("gap", [9, 12, 24])
@pytest.mark.parametrize("mixed", [False, True])
def test_columns_of_prose_are_read_one_after_the_other(desk, root, gap, mixed) -> None:
    two_column_pdf(root / "two.pdf", gap=gap, mixed=mixed)
    text = page(desk, "/two.pdf")
    order = re.findall(r"\b[LR]\d\d\b", text)
    assert order == [f"L{i:02d}" for i in range(20)] + [f"R{i:02d}" for i in range(20)]
    assert text.index("HEADLINE") < text.index("L00")


def test_a_ruled_table_keeps_every_cell_and_every_blank(desk: Desk) -> None:
    text = page(desk, "/table.pdf")
    for row in ROWS:
        assert f"| {' | '.join(row)} |" in text
    assert text.index("Segments in USD") < text.index("| Segment |")


def test_a_blank_cell_is_told_from_its_neighbour(desk, root: Path) -> None:
    table_pdf(root / "a.pdf", [["", "FY1", "FY2", "FY3"], ["EBITDA", "", "30", "35"]])
    table_pdf(root / "b.pdf", [["", "FY1", "FY2", "FY3"], ["EBITDA", "30", "35", ""]])
    assert "| EBITDA |  | 30 | 35 |" in page(desk, "/a.pdf")
    assert "| EBITDA | 30 | 35 |  |" in page(desk, "/b.pdf")


def test_a_merged_cell_is_repeated_and_marked(desk, root: Path) -> None:
    rows = [["Segment", "Revenue", ""], ["", "FY23", "FY24"], ["Cloud", "1", "2"]]
    table_pdf(root / "m.pdf", rows, [("SPAN", (1, 0), (2, 0)), ("SPAN", (0, 0), (0, 1))])
    text = page(desk, "/m.pdf")
    assert "| Segment | Revenue | ↳ Revenue |\n| ↳ Segment | FY23 | FY24 |" in text
    assert "repeats a merged cell" in text


def test_an_open_table_keeps_its_rows_whole_and_its_blanks_visible(desk, root: Path) -> None:
    plain_table_pdf(root / "plain.pdf")
    lines = page(desk, "/plain.pdf").splitlines()
    at = {line.split()[0]: line for line in lines if line.strip()}
    assert at["Cloud"].split() == ["Cloud", "1,204.5", "1,398.2"]
    assert at["Licences"].split() == ["Licences", "880.1"]
    assert abs(at["Licences"].index("880.1") - at["Cloud"].index("1,398.2")) <= 3


def test_a_list_of_names_and_values_is_no_text_in_columns(desk, root: Path) -> None:
    sheet = canvas.Canvas(str(root / "list.pdf"), pagesize=letter)
    for number in range(12):
        sheet.drawString(72, 700 - 14 * number, f"Account{number:02d}")
        sheet.drawString(300, 700 - 14 * number, f"{number * 7}.00")
    sheet.save()
    lines = page(desk, "/list.pdf").splitlines()
    for number in range(12):
        row = next(line for line in lines if f"Account{number:02d}" in line)
        assert row.split() == [f"Account{number:02d}", f"{number * 7}.00"]


@pytest.mark.parametrize("flag", [True, False])
def test_a_page_on_its_side_is_read_upright(desk, root: Path, flag: bool) -> None:
    sheet = canvas.Canvas(str(root / "side.pdf"), pagesize=letter)
    if flag:
        sheet.setPageRotation(90)
    sheet.rotate(90)
    sheet.translate(0, -letter[0])
    for r, row in enumerate(ROWS):
        for c, cell in enumerate(row):
            sheet.rect(72 + 120 * c, 480 - 20 * r, 120, 20)
            sheet.drawString(76 + 120 * c, 485 - 20 * r, cell)
    sheet.save()
    assert "| Licences |  | 880.1 |" in page(desk, "/side.pdf")


def test_text_printed_twice_is_read_once(desk, root: Path) -> None:
    sheet = canvas.Canvas(str(root / "bold.pdf"))
    rows = [f"Bookkeeping committee {number}" for number in range(12)]
    for shift in (0, 0.3):
        for number, row in enumerate(rows):
            sheet.drawString(72 + shift, 700 - 14 * number, row)
    sheet.save()
    assert page(desk, "/bold.pdf").split("---\n")[1].splitlines() == rows


def test_hidden_text_is_left_out_and_counted(desk, root: Path) -> None:
    sheet = canvas.Canvas(str(root / "hidden.pdf"))
    sheet.drawString(72, 700, "price 100")
    sheet.drawString(-500, 600, "offpage")
    invisible = sheet.beginText(72, 650)
    invisible.setTextRenderMode(3)
    invisible.textOut("invisible")
    sheet.drawText(invisible)
    sheet.setFillColor(colors.white)
    sheet.drawString(72, 550, "whiteonwhite")
    sheet.save()
    text = page(desk, "/hidden.pdf")
    assert "price 100" in text
    for word in ("offpage", "invisible", "whiteonwhite"):
        assert word not in text.split("[")[0]
    assert "28 invisible or off-page characters left out" in text


def test_white_text_on_a_dark_ground_is_read(desk, root: Path) -> None:
    sheet = canvas.Canvas(str(root / "dark.pdf"))
    sheet.setFillColor(colors.navy)
    sheet.rect(60, 690, 200, 30, fill=1, stroke=0)
    sheet.setFillColor(colors.white)
    sheet.drawString(72, 700, "Heading")
    sheet.save()
    assert "Heading" in page(desk, "/dark.pdf")


def test_the_values_of_a_form_are_printed(desk, root: Path) -> None:
    sheet = canvas.Canvas(str(root / "form.pdf"))
    sheet.drawString(72, 700, "Name")
    sheet.acroForm.textfield(name="name", value="FORMVALUE42", x=120, y=690)
    sheet.acroForm.checkbox(name="agree", checked=True, x=72, y=650)
    sheet.save()
    text = page(desk, "/form.pdf")
    assert "name: FORMVALUE42" in text
    assert "agree: checked" in text


def test_scans_and_blank_pages_say_so(desk, root: Path) -> None:
    text_pdf(root / "blank.pdf", [""])
    scan = call(desk, READ, {"file_path": "/scan.pdf"})
    assert (scan.envelope["code"], scan.envelope["counts"]["without_text"]) == ("scanned", 1)
    assert "read_page_as_image" in scan.texts[0]
    assert call(desk, READ, {"file_path": "/blank.pdf"}).envelope["code"] == "blank"


@pytest.mark.parametrize("name", [READ, SEARCH, "pdf_server_get_pdf_info"])
@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/locked.pdf", "pdf_encrypted"),
        ("/broken.pdf", "pdf_corrupt"),
        ("/nothing.pdf", "empty_file"),
        ("/notes.txt", "not_a_pdf"),
        ("/reports", "not_a_file"),
        ("/none.pdf", "not_found"),
    ],
)
def test_what_cannot_be_read_has_a_code(desk: Desk, name, path, code) -> None:
    extra = {"query": "x"} if name == SEARCH else {}
    assert call(desk, name, {"file_path": path, **extra}).envelope["code"] == code


def test_a_password_opens_a_locked_file(desk: Desk) -> None:
    assert "secret of the board" in page(desk, "/locked.pdf", password="open")
    wrong = call(desk, READ, {"file_path": "/locked.pdf", "password": "wrong"})
    assert "password is wrong" in wrong.texts[0]


@pytest.mark.parametrize("pages", [[0], [2], [1, 7, -1], [-1]])
def test_a_page_that_is_not_there_names_the_valid_range(desk: Desk, pages) -> None:
    reply = call(desk, READ, {"file_path": "/table.pdf", "pages": pages})
    assert reply.envelope["code"] == "page_out_of_range"
    assert "Valid pages: 1 to 1." in reply.texts[0]


def _long(path: Path, pages: int) -> Path:
    lines = [f"page {p} line {n}" for p in range(1, pages + 1) for n in range(40)]
    return text_pdf(path, ["\n".join(lines[p * 40 : p * 40 + 40]) for p in range(pages)])


def test_the_first_page_of_a_long_file_comes_at_once(desk, root: Path) -> None:
    _long(root / "long.pdf", 600)
    began = time.monotonic()
    reply = call(desk, READ, {"file_path": "/long.pdf", "pages": [1]})
    assert time.monotonic() - began < 1
    assert "page 1 line 39" in reply.texts[0]
    assert reply.envelope["counts"]["pages"] == 600


def test_a_long_file_comes_in_pages_without_loss(desk, root: Path) -> None:
    _long(root / "long.pdf", 60)
    arguments: dict = {"file_path": "/long.pdf", "max_chars": 7777}
    seen: list[str] = []
    calls = 0
    while arguments:
        reply = call(desk, READ, arguments)
        assert len(reply.texts[0]) < 9000
        seen += re.findall(r"page \d+ line \d+", reply.texts[0])
        follow = dict(reply.envelope["next"])
        arguments = {**follow, "max_chars": 7777} if follow else {}
        calls += 1
    assert calls > 3
    assert seen == [f"page {p} line {n}" for p in range(1, 61) for n in range(40)]


def test_a_page_larger_than_the_room_is_cut_and_continued(desk, root: Path) -> None:
    text_pdf(root / "full.pdf", ["\n".join(f"word{i:03d} " * 6 for i in range(45))])
    whole = page(desk, "/full.pdf").split("---\n", 1)[1]
    arguments: dict = {"file_path": "/full.pdf", "max_chars": 500}
    read = ""
    while arguments:
        reply = call(desk, READ, arguments)
        body = reply.texts[0].split("---\n", 1)[1]
        follow = dict(reply.envelope["next"])
        read += body.rpartition("\n\n[more")[0] if follow else body
        arguments = {**follow, "max_chars": 500} if follow else {}
    assert read == whole


def test_chosen_pages_come_in_the_order_asked(desk, root: Path) -> None:
    _long(root / "long.pdf", 5)
    found = re.findall(r"--- Page (\d)", page(desk, "/long.pdf", pages=[4, 2]))
    assert found == ["4", "2"]


def test_a_changed_file_is_read_again(desk, root: Path) -> None:
    text_pdf(root / "x.pdf", ["before"])
    assert "before" in page(desk, "/x.pdf")
    text_pdf(root / "x.pdf", ["after"])
    assert "after" in page(desk, "/x.pdf")


def test_a_page_read_before_is_remembered_by_the_identity_of_its_file(desk, root: Path) -> None:
    path = text_pdf(root / "x.pdf", ["before"], pageCompression=0)
    page(desk, "/x.pdf")
    before = path.stat()
    other = text_pdf(root / "y.pdf", ["behind"], pageCompression=0).read_bytes()
    assert len(other) == before.st_size
    path.write_bytes(other)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "before" in page(desk, "/x.pdf")
    assert call(desk, SEARCH, {"file_path": "/x.pdf", "query": "before"}).envelope["code"] == "ok"


@pytest.mark.parametrize(
    ("query", "options", "count"),
    [
        ("Cloud 1,204.5", {}, 1),
        ("cloud", {}, 1),
        ("cloud", {"case_sensitive": True}, 0),
        ("Licen", {"whole_word": True}, 0),
        ("Licences", {"whole_word": True}, 1),
        ("1.204", {}, 0),
        ("in  USD\nmillions", {}, 1),
    ],
)
def test_a_search_finds_what_a_reader_would(desk: Desk, query, options, count) -> None:
    reply = call(desk, SEARCH, {"file_path": "/table.pdf", "query": query, **options})
    assert reply.envelope["counts"]["matches"] == count
    assert reply.envelope["code"] == ("ok" if count else "no_match")


def test_a_search_says_which_pages_it_could_not_see(desk, root: Path) -> None:
    sheet = canvas.Canvas(str(root / "mixed.pdf"), pagesize=letter)
    sheet.drawString(72, HEIGHT - 72, "words")
    sheet.showPage()
    sheet.drawImage(str(root / "picture.png"), 0, 0, 612, 792)
    sheet.save()
    reply = call(desk, SEARCH, {"file_path": "/mixed.pdf", "query": "nowhere"})
    assert "not searched, no text: pages 2" in reply.texts[0]


def test_a_search_goes_on_where_it_stopped(desk, root: Path) -> None:
    _long(root / "long.pdf", 30)
    arguments: dict = {"file_path": "/long.pdf", "query": "line 7", "max_results": 7}
    pages: list[str] = []
    while arguments:
        reply = call(desk, SEARCH, arguments)
        pages += re.findall(r"\[Page (\d+)\]", reply.texts[0])
        follow = dict(reply.envelope["next"])
        arguments = {**follow, "max_results": 7} if follow else {}
    assert pages == [str(number) for number in range(1, 31)]


def test_a_hyphen_at_the_end_of_a_line_does_not_hide_a_word() -> None:
    wanted = pattern("acquisition of", case_sensitive=False, whole_word=True)
    assert list(matches("the acqui-\nsition of", wanted, 40)) == ["the acquisition of"]


@given(st.text(alphabet="ab -|\n", max_size=60))
def test_reduced_text_knows_where_each_character_came_from(text: str) -> None:
    held = reduced(text)
    assert len(held.text) == len(held.places)
    assert held.places == sorted(held.places)
    for character, place in zip(held.text, held.places, strict=True):
        assert character == text[place] or (character == " " and text[place] in " |\n")
