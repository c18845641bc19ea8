# SPDX-License-Identifier: Apache-2.0
"""A world's documents laid out once, beside the world: made, found again, made anew."""

import json
import shutil
from pathlib import Path

import pytest

from envkit.sandbox.parsed import ensure_parsed
from envkit.servers.pdf.library import SMALLEST
from envkit.servers.pdf.shelf import unpack


@pytest.fixture
def world(tmp_path: Path) -> Path:
    folder = tmp_path / "worlds" / "a-world"
    (folder / "filesystem" / "deep").mkdir(parents=True)
    (folder / "filesystem" / "deep" / "warm.pdf").write_bytes(SMALLEST)
    (folder / "filesystem" / "hostile.pdf").write_bytes(b"%PDF-1.7\n" + bytes(range(256)) * 40)
    return folder


def _records(shelf: Path) -> list[Path]:
    return [path for path in shelf.iterdir() if path.suffix != ".json"]


def test_a_broken_document_costs_no_other(world: Path, tmp_path: Path) -> None:
    shelf = ensure_parsed(world, tmp_path / "cache")
    assert shelf is not None
    (record,) = _records(shelf)
    held = unpack(record.read_bytes())
    assert held is not None
    assert held.page(1) == "text\0warm"
    assert record.stat().st_mode & 0o777 == 0o444
    assert shelf.stat().st_mode & 0o777 == 0o755


def test_what_is_there_is_found_and_not_made_again(world: Path, tmp_path: Path) -> None:
    shelf = ensure_parsed(world, tmp_path / "cache")
    assert shelf is not None
    made = shelf.stat().st_ino
    shutil.rmtree(world)
    assert ensure_parsed(world, tmp_path / "cache") == shelf
    assert shelf.stat().st_ino == made


@pytest.mark.parametrize("damage", ["cut", "changed", "gone", "more", "no inventory"])
def test_what_is_damaged_is_made_anew(world: Path, tmp_path: Path, damage: str) -> None:
    shelf = ensure_parsed(world, tmp_path / "cache")
    assert shelf is not None
    (record,) = _records(shelf)
    good = record.read_bytes()
    record.chmod(0o644)
    if damage == "cut":
        record.write_bytes(good[:-1])
    elif damage == "changed":
        record.write_bytes(good[:-1] + b"?")
    elif damage == "gone":
        record.unlink()
    elif damage == "more":
        (shelf / "1-another").write_bytes(good)
    else:
        (shelf / "inventory.json").write_text("{")
    assert ensure_parsed(world, tmp_path / "cache") == shelf
    assert [path.name for path in _records(shelf)] == [record.name]
    assert record.read_bytes() == good
    assert json.loads((shelf / "inventory.json").read_text()).keys() == {record.name}
    assert not list(shelf.parent.glob(".building-*"))


def test_a_place_that_cannot_be_written_costs_only_the_help(world: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    assert ensure_parsed(world, tmp_path / "cache") is None
