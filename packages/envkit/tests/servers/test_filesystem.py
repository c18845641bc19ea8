# SPDX-License-Identifier: Apache-2.0
"""Listing, reading, finding and writing: what the model reads, and what is on disk after."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from envkit.servers.desk import Desk

from .conftest import call
from .documents import noise_image

FS = "filesystem_server_"


def text(desk: Desk, name: str, **arguments: object) -> str:
    reply = call(desk, FS + name, arguments)
    assert not reply.is_error, reply.texts
    return reply.texts[0]


def code(desk: Desk, name: str, **arguments: object) -> str:
    return str(call(desk, FS + name, arguments).envelope["code"])


def test_a_folder_is_listed_by_name_with_kind_and_size(desk: Desk, root: Path) -> None:
    (root / "link").symlink_to("notes.txt")
    lines = text(desk, "list_files").splitlines()
    assert lines == sorted(lines)
    assert "'reports' (folder)" in lines
    assert "'notes.txt' (text/plain file) 47 bytes" in lines
    assert "'link' (symbolic link)" in lines


def test_an_empty_folder_says_so(desk: Desk) -> None:
    assert text(desk, "list_files", path="/empty") == "No items found in /empty"


def test_a_long_folder_comes_in_pages_without_loss(desk: Desk, root: Path) -> None:
    (root / "many").mkdir()
    for number in range(2100):
        (root / "many" / f"{number:04}.txt").touch()
    arguments: dict = {"path": "/many"}
    names: list[str] = []
    while arguments:
        envelope = call(desk, FS + "list_files", arguments).envelope
        names += envelope["paths"]
        arguments = envelope["next"]
    assert names == [f"/many/{number:04}.txt" for number in range(2100)]


def test_the_tree_is_drawn_to_the_depth_asked(desk: Desk) -> None:
    deep = text(desk, "get_directory_tree")
    assert "├── reports/\n│   └── 2025/\n│       └── summary.md" in deep
    assert "2025" not in text(desk, "get_directory_tree", max_depth=1)
    folders = text(desk, "get_directory_tree", include_files=False)
    assert folders.splitlines() == ["/", "├── empty/", "└── reports/", "    └── 2025/"]
    assert "notes.txt (47 bytes)" in text(desk, "get_directory_tree", show_size=True)


def test_text_comes_in_pages_without_loss(desk: Desk, root: Path) -> None:
    whole = "".join(f"line {number} é\n" for number in range(20_000))
    (root / "long.txt").write_text(whole)
    arguments: dict = {"file_path": "/long.txt"}
    read = ""
    while arguments:
        reply = call(desk, FS + "read_text_file", arguments)
        page, _, _ = reply.texts[0].rpartition("\n[")
        arguments = dict(reply.envelope["next"])
        read += page if arguments else reply.texts[0]
    assert read == whole


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("é".encode(), "é"),
        ("é".encode("utf-8-sig"), "é"),
        ("é".encode("utf-16"), "é"),
        ("caf\xe9".encode("cp1252"), "café\n[not valid utf-8: read as cp1252]"),
        (b"", "/x.txt is empty."),
    ],
)
def test_text_is_decoded_and_guesses_are_said(desk: Desk, root: Path, data, expected) -> None:
    (root / "x.txt").write_bytes(data)
    assert text(desk, "read_text_file", file_path="/x.txt") == expected


def test_what_is_not_text_names_the_tool_that_reads_it(desk: Desk, root: Path) -> None:
    (root / "data.bin").write_bytes(bytes(100))
    for path, tool in [
        ("/table.pdf", "read_pdf_pages"),
        ("/book.xlsx", "openpyxl"),
        ("/picture.png", "read_image_file"),
        ("/data.bin", "code_exec"),
    ]:
        assert tool in call(desk, FS + "read_text_file", {"file_path": path}).texts[0]


def test_wrong_encodings_and_offsets_are_named(desk: Desk) -> None:
    path = {"file_path": "/notes.txt"}
    assert code(desk, "read_text_file", **path, encoding="klingon") == "wrong_encoding"
    assert code(desk, "read_text_file", **path, offset=47) == "offset_out_of_range"


def test_a_large_picture_is_made_to_fit(desk: Desk, root: Path) -> None:
    noise_image(root / "noise.png")
    reply = call(desk, FS + "read_image_file", {"file_path": "/noise.png"})
    assert "1600 x 1200 pixels, sent as JPEG" in reply.texts[0]
    assert len(reply.images[0].data) < 1_000_000


def test_names_are_found_by_glob_word_and_pattern(desk: Desk) -> None:
    assert "/reports/2025/summary.md" in text(desk, "search_files", pattern="*.MD")
    assert "as part of the name" in text(desk, "search_files", pattern="summ")
    assert "regular expression" in text(desk, "search_files", pattern="(summary|x)\\.md$")
    assert code(desk, "search_files", pattern="*.md", recursive=False) == "no_match"
    assert "limited to 1" in text(desk, "search_files", pattern="*", max_results=1)


def test_contents_are_found_in_every_kind_of_file_with_their_place(desk: Desk) -> None:
    found = text(desk, "grep_files", query="FREIGHT margin")
    assert "/book.xlsx: Rates!B2: freight margin" in found
    assert "/letter.docx: paragraph 1: The freight margin clause." in found
    assert "/deck.pptx: slide 1: Freight margin by lane" in found
    assert "notes 1: say it slowly" in text(desk, "grep_files", query="slowly")
    assert "/table.pdf: page 1: " in text(desk, "grep_files", query="Cloud 1,204.5")
    assert "/notes.txt: line 2: " in text(desk, "grep_files", query="31 percent")
    assert "paragraph" in text(desk, "grep_files", query="cell of the letter")
    assert "Rates!C3" in text(desk, "grep_files", query="=1+1")


def test_what_could_not_be_searched_is_listed(desk: Desk) -> None:
    found = text(desk, "grep_files", query="nowhere")
    for name, why in [
        ("/locked.pdf", "pdf_encrypted"),
        ("/broken.pdf", "pdf_corrupt"),
        ("/nothing.pdf", "empty_file"),
        ("/scan.pdf", "without text"),
        ("/picture.png", "not text"),
    ]:
        assert name in found
        assert why in found


def test_a_hostile_office_file_is_refused(desk: Desk, root: Path) -> None:
    import zipfile

    laughs = '<!DOCTYPE x [<!ENTITY a "aa">]><w:p xmlns:w="w"><w:t>&a;</w:t></w:p>'
    with zipfile.ZipFile(root / "bad.docx", "w") as archive:
        archive.writestr("word/document.xml", laughs)
    (root / "worse.xlsx").write_bytes(b"PK\3\4 garbage")
    found = text(desk, "grep_files", query="aa", file_pattern="*[dx]")
    assert "declares a document type" in found
    assert "/worse.xlsx (damaged or protected" in found


def test_a_grep_goes_on_where_it_stopped(desk: Desk, root: Path) -> None:
    for number in range(30):
        (root / "empty" / f"{number:02}.txt").write_text("needle\n")
    arguments: dict = {"query": "needle", "path": "/empty", "max_results": 7}
    found: list[str] = []
    while arguments:
        envelope = call(desk, FS + "grep_files", arguments).envelope
        found += envelope["paths"]
        arguments = dict(envelope["next"])
    assert found == [f"/empty/{number:02}.txt" for number in range(30)]


def test_a_file_is_written_whole_with_its_folders(desk: Desk, root: Path) -> None:
    assert "Created" in text(desk, "write_file", file_path="/a/b/c.txt", content="é\n")
    assert (root / "a" / "b" / "c.txt").read_bytes() == "é\n".encode()
    again = {"file_path": "/a/b/c.txt", "content": "new", "overwrite": True}
    assert "Replaced" in text(desk, "write_file", **again)
    assert (root / "a" / "b" / "c.txt").read_text() == "new"
    assert os.listdir(root / "a" / "b") == ["c.txt"]


@pytest.mark.parametrize("name", ["write_file", "copy_file", "move_file"])
def test_nothing_is_overwritten_unless_asked(desk: Desk, root: Path, name: str) -> None:
    (root / "old.txt").write_text("old")
    arguments = (
        {"file_path": "/old.txt", "content": "new"}
        if name == "write_file"
        else {"source_path": "/notes.txt", "destination_path": "/old.txt"}
    )
    assert code(desk, name, **arguments) == "already_exists"
    assert (root / "old.txt").read_text() == "old"
    assert (root / "notes.txt").exists()
    assert code(desk, name, **arguments, overwrite=True) == "ok"
    assert (root / "old.txt").read_text() != "old"


def test_a_folder_is_never_replaced_by_a_file(desk: Desk, root: Path) -> None:
    target = {"file_path": "/reports", "content": "x", "overwrite": True}
    assert code(desk, "write_file", **target) == "not_a_file"
    assert (root / "reports").is_dir()


def test_moving_a_folder_into_itself_is_refused(desk: Desk, root: Path) -> None:
    arguments = {"source_path": "/reports", "destination_path": "/reports/2025/in"}
    assert code(desk, "move_file", **arguments) == "invalid_path"
    assert (root / "reports" / "2025" / "summary.md").exists()


def test_a_copy_keeps_the_mode(desk: Desk, root: Path) -> None:
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    call(desk, FS + "copy_file", {"source_path": "/run.sh", "destination_path": "/b.sh"})
    assert os.access(root / "b.sh", os.X_OK)


def test_a_call_cut_short_while_writing_leaves_the_old_file(desk: Desk, root: Path) -> None:
    """The copy is killed by its deadline; neither a piece nor a hidden file is left."""
    from dataclasses import replace

    from envkit.servers.command import LocalRunner
    from envkit.servers.config import ToolLimits

    with open(root / "huge.bin", "wb") as file:
        file.truncate(40 << 30)
    (root / "target.bin").write_text("old")
    short = Desk(replace(desk.config, limits=ToolLimits(file_s=0.3)), LocalRunner())
    arguments = {
        "source_path": "/huge.bin",
        "destination_path": "/target.bin",
        "overwrite": True,
    }
    reply = call(short, FS + "copy_file", arguments)
    assert (reply.envelope["code"], reply.envelope["applied"]) == ("deadline_exceeded", "no")
    assert (root / "target.bin").read_text() == "old"
    assert not [name for name in os.listdir(root) if name.startswith(".")]
    short.close()
