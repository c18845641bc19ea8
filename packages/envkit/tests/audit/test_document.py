# SPDX-License-Identifier: Apache-2.0
import os
from pathlib import Path

import pytest

from envkit.audit.document import ReadError, load, parse

BROKEN = {
    "empty": (b"", "empty file"),
    "blank": (b" \n", "empty file"),
    "cut off": (b'{"messages": [{"role"', "cut off or broken JSON"),
    "two documents": (b"{}{}", "cut off or broken JSON"),
    "binary": (b"PK\x03\x04\x00\x00\x00", "binary, not JSON"),
    "not UTF-8": (b'{"a": "\xff\xfe"}', "not UTF-8 text: byte 7"),
    "deep list": (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
    "deep object": (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, "nested too deeply"),
    "deep and cut off": (b'[{"a":' * 50_000, "nested too deeply"),
}


@pytest.mark.parametrize(("data", "reason"), BROKEN.values(), ids=BROKEN)
def test_what_is_no_json_has_one_reason(data: bytes, reason: str) -> None:
    with pytest.raises(ReadError, match=f"^{reason}"):
        parse(data)


def test_what_pythons_writer_emits_is_read() -> None:
    assert parse(b'\xef\xbb\xbf{"a": Infinity}') == {"a": float("inf")}
    assert parse(b'{"a": "\\ud800"}') == {"a": "\ud800"}


def test_a_link_is_not_followed_even_inside(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("{}", "utf-8")
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    with pytest.raises(ReadError, match="symbolic link"):
        load(tmp_path / "link.json", tmp_path)


def test_a_directory_that_links_out_is_not_entered(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "result.json").write_text("{}", "utf-8")
    (root / "agent").symlink_to(outside)
    with pytest.raises(ReadError, match="links out"):
        load(root / "agent" / "result.json", root)


def test_a_pipe_never_blocks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "trajectory.json")
    with pytest.raises(ReadError, match="not a regular file"):
        load(tmp_path / "trajectory.json", tmp_path)


def test_a_directory_named_like_a_file(tmp_path: Path) -> None:
    (tmp_path / "trajectory.json").mkdir()
    with pytest.raises(ReadError):
        load(tmp_path / "trajectory.json", tmp_path)
