# SPDX-License-Identifier: Apache-2.0
"""The shelf of parsed documents: the same answers as without it, never a wrong one."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reportlab.lib import pdfencrypt
from reportlab.lib.pagesizes import letter
from reportlab.pdfgen import canvas

from envkit.servers.command import LocalRunner
from envkit.servers.config import GatewayConfig
from envkit.servers.contract import Reply
from envkit.servers.desk import Desk
from envkit.servers.pdf.shelf import Shelf, pack, record_name, unpack
from envkit.servers.pdf.shelving import shelve

from .documents import (
    broken_pdf,
    locked_pdf,
    scanned_pdf,
    sentences,
    table_pdf,
    text_pdf,
    two_column_pdf,
)

READ, SEARCH, GREP = (
    "pdf_server_read_pdf_pages",
    "pdf_server_search_pdf",
    "filesystem_server_grep_files",
)
NAMES = ("long", "columns", "table", "scan", "locked", "owned", "broken", "form", "no")
forks = 0
"""Of this process so far."""


def _count_fork() -> None:
    global forks
    forks += 1


os.register_at_fork(before=_count_fork)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shelved") / "filesystem"
    folder.mkdir()
    text_pdf(folder / "long.pdf", [sentences(f"P{n}", 30) for n in range(7)])
    two_column_pdf(folder / "columns.pdf")
    table_pdf(folder / "table.pdf")
    scanned_pdf(folder / "scan.pdf")
    locked_pdf(folder / "locked.pdf")
    broken_pdf(folder / "broken.pdf")
    _form(folder / "form.pdf")
    text_pdf(
        folder / "owned.pdf",
        ["open to all, to be changed by its owner"],
        encrypt=pdfencrypt.StandardEncryption("", ownerPassword="owner"),
    )
    (folder / "plain.txt").write_text("no document at all, though it says %PDF")
    return folder


def _form(path: Path) -> None:
    sheet = canvas.Canvas(str(path), pagesize=letter)
    sheet.drawString(72, 700, "Name")
    sheet.acroForm.textfield(name="name", value="FORMVALUE42", x=120, y=690)
    sheet.showPage()
    sheet.showPage()
    sheet.save()


@pytest.fixture(scope="module")
def shelf(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shelf")
    asyncio.run(shelve(files, folder))
    return folder


@pytest.fixture(scope="module")
def desks(files: Path, shelf: Path) -> Generator[tuple[Desk, Desk]]:
    """With the shelf and without."""
    config = GatewayConfig(root=files, apps_data=files, token="t", command_root=str(files))
    both = Desk(replace(config, parsed=shelf), LocalRunner()), Desk(config, LocalRunner())
    yield both
    for desk in both:
        desk.close()


def _ask(desk: Desk, name: str, **arguments: Any) -> Reply:
    return asyncio.run(desk.call(name, arguments))


def _same(desks: tuple[Desk, Desk], name: str, **arguments: Any) -> Reply:
    """What both desks answer."""
    with_shelf, without = (_ask(desk, name, **arguments) for desk in desks)
    assert with_shelf.to_record() == without.to_record()
    return with_shelf


paths = st.sampled_from([f"/{name}.pdf" for name in NAMES])
few = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


@few
@given(
    file_path=paths,
    pages=st.lists(st.integers(0, 9), max_size=5),
    first_page=st.integers(-1, 9),
    offset=st.integers(0, 3000),
    max_chars=st.integers(150, 9000),
    password=st.sampled_from(["", "", "", "open", "owner", "wrong"]),
)
def test_pages_read_the_same_with_and_without(desks: Any, **arguments: Any) -> None:
    _same(desks, READ, **arguments)


@few
@given(
    file_path=paths,
    query=st.sampled_from(["P3", "the", "FORMVALUE42", "a | b", "Segment", "L01", " ", "x" * 9]),
    case_sensitive=st.booleans(),
    whole_word=st.booleans(),
    max_results=st.integers(1, 60),
    context_chars=st.integers(0, 90),
    first_page=st.integers(0, 8),
)
def test_searches_find_the_same_with_and_without(desks: Any, **arguments: Any) -> None:
    _same(desks, SEARCH, **arguments)


def test_a_search_over_all_files_finds_the_same(desks: Any) -> None:
    assert "long.pdf" in _same(desks, GREP, query="P3").texts[0]


def test_every_document_that_opens_is_there_and_no_other(files: Path, shelf: Path) -> None:
    held = {name: Shelf(shelf).find(_open(files / f"{name}.pdf")) for name in NAMES[:-1]}
    assert {name for name, found in held.items() if found is None} == {"locked", "broken"}
    assert held["long"] is not None
    assert held["long"].pages == 7
    assert len(list(shelf.iterdir())) == 6


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY)


def test_what_is_held_is_answered_without_a_fork(desks: Any) -> None:
    with_shelf, without = desks
    before = forks
    assert not _ask(with_shelf, READ, file_path="/long.pdf", pages=[3]).is_error
    assert not _ask(with_shelf, SEARCH, file_path="/long.pdf", query="P3").is_error
    assert _ask(with_shelf, READ, file_path="/no.pdf").is_error
    assert forks == before
    _ask(without, READ, file_path="/long.pdf", pages=[3])
    assert forks == before + 1


def test_a_document_that_was_changed_is_read_as_it_is_now(
    files: Path, shelf: Path, tmp_path: Path
) -> None:
    root = shutil.copytree(files, tmp_path / "filesystem")
    desk = Desk(GatewayConfig(root=root, apps_data=root, parsed=shelf), LocalRunner())
    changed = (root / "long.pdf").stat()
    text_pdf(root / "other.pdf", ["another text of the same file name"])
    assert "P0" in _ask(desk, READ, file_path="/long.pdf").texts[0]
    (root / "other.pdf").replace(root / "long.pdf")
    os.utime(root / "long.pdf", ns=(changed.st_atime_ns, changed.st_mtime_ns))
    assert "another text" in _ask(desk, READ, file_path="/long.pdf").texts[0]
    desk.close()


def test_a_changed_document_of_the_same_size_is_not_on_the_shelf(
    files: Path, shelf: Path, tmp_path: Path
) -> None:
    data = bytearray((files / "long.pdf").read_bytes())
    data[-1] ^= 1
    (tmp_path / "same-size.pdf").write_bytes(data)
    assert Shelf(shelf).find(_open(tmp_path / "same-size.pdf")) is None


@given(st.lists(st.text(st.characters(exclude_categories=()))))
def test_pages_come_back_as_they_were_packed(pages: list[str]) -> None:
    held = unpack(pack(pages))
    assert held is not None
    assert [held.page(number) for number in range(1, held.pages + 1)] == pages


RECORD = pack(["text\0one page", "scan\0", "text\0another page, the last"])


@given(at=st.integers(0, len(RECORD) - 1), bit=st.integers(0, 7))
def test_a_record_with_a_changed_bit_is_no_record(at: int, bit: int) -> None:
    damaged = bytearray(RECORD)
    damaged[at] ^= 1 << bit
    assert unpack(bytes(damaged)) is None


@given(st.integers(0, len(RECORD) - 1))
def test_a_record_that_is_cut_is_no_record(length: int) -> None:
    assert unpack(RECORD[:length]) is None


def test_damage_on_the_shelf_costs_no_answer(files: Path, shelf: Path, tmp_path: Path) -> None:
    torn = shutil.copytree(shelf, tmp_path / "torn")
    record = torn / record_name(_open(files / "long.pdf"))
    record.chmod(0o644)
    record.write_bytes(record.read_bytes()[:-7])
    config = GatewayConfig(root=files, apps_data=files)
    for parsed in (torn, tmp_path / "missing"):
        desk = Desk(replace(config, parsed=parsed), LocalRunner())
        assert "P2" in _ask(desk, READ, file_path="/long.pdf", pages=[3]).texts[0]
        desk.close()
