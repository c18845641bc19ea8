# SPDX-License-Identifier: Apache-2.0
"""Merging segments loses nothing, wherever it is cut short, and touches nothing that is damaged."""

from dataclasses import replace
from pathlib import Path

import pytest

from envkit.trajectory.columns import CHECKSUM, encode
from envkit.trajectory.compact import compact
from envkit.trajectory.errors import StoreBusy
from envkit.trajectory.head import head_of
from envkit.trajectory.segment import Row, encode_segment, read_segment
from envkit.trajectory.store import Store, segment_files
from envkit.trajectory.writer import Writer

from .rows import same, trajectory

ROWS = tuple(trajectory(f"task__{number:03d}", seed=number, turns=2) for number in range(6))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Six segments of one row."""
    for row in ROWS:
        with Writer.open(tmp_path) as writer:
            writer.append(row)
    return tmp_path


def names(directory: Path) -> list[str]:
    return [file.name for file in segment_files(directory)]


def holds_all(directory: Path) -> bool:
    return all(same(*pair) for pair in zip(Store(directory), ROWS, strict=True))


def test_all_segments_become_one_in_the_same_order(store: Path) -> None:
    done = compact(store)
    assert names(store) == ["segment-00000001-00000006.arrow"]
    assert (len(done.removed), done.left) == (6, ())
    assert holds_all(store)


def test_merged_again_nothing_changes(store: Path) -> None:
    compact(store)
    assert compact(store).merged == ()


def test_what_a_later_minor_wrote_is_left_alone(store: Path) -> None:
    """It may say what this version cannot write again."""
    for number, row in enumerate((trajectory("new__000"), trajectory("new__001")), 10):
        batch = encode(row)
        rows = [Row(head=head_of(row), checksum=batch.column(CHECKSUM)[0].as_py(), batch=batch)]
        data = encode_segment(rows, "envkit.trajectory/1.9")
        (store / f"segment-{number:08}.arrow").write_bytes(data)
    before = (store / "segment-00000010.arrow").read_bytes()
    compact(store)
    assert names(store)[1:] == ["segment-00000010.arrow", "segment-00000011.arrow"]
    assert (store / "segment-00000010.arrow").read_bytes() == before


def test_a_writer_goes_on_behind_what_was_merged(store: Path) -> None:
    compact(store)
    with Writer.open(store) as writer:
        writer.append(trajectory("later__000"))
    assert names(store)[1:] == ["segment-00000007.arrow"]
    compact(store)
    assert names(store) == ["segment-00000001-00000007.arrow"]
    assert Store(store).ids[-1] == "later__000"


def test_segments_are_merged_up_to_a_size(store: Path) -> None:
    size = segment_files(store)[0].stat().st_size
    compact(store, target_bytes=int(3.5 * size))
    assert names(store) == ["segment-00000001-00000003.arrow", "segment-00000004-00000006.arrow"]
    assert holds_all(store)


def test_a_damaged_segment_is_left_alone_and_named(store: Path) -> None:
    bad = segment_files(store)[2]
    (place,) = read_segment(bad).places
    data = bytearray(bad.read_bytes())
    data[place.start + place.length // 2] ^= 1
    bad.write_bytes(data)
    done = compact(store)
    assert names(store) == [
        "segment-00000001-00000002.arrow",
        "segment-00000003.arrow",
        "segment-00000004-00000006.arrow",
    ]
    assert [getattr(each, "row", "") for each in done.left] == ["task__002"]
    assert bad.read_bytes() == data


def test_rows_that_contradict_each_other_are_both_kept(store: Path) -> None:
    other = replace(ROWS[0], outcome=replace(ROWS[0].outcome, loss_live=False))
    batch = encode(other)
    row = Row(head=head_of(other), checksum=batch.column(CHECKSUM)[0].as_py(), batch=batch)
    (store / "segment-00000007.arrow").write_bytes(encode_segment([row]))
    done = compact(store)
    assert [getattr(each, "row", "") for each in done.left] == ["task__000"]
    assert names(store) == [
        "segment-00000001.arrow",
        "segment-00000002-00000006.arrow",
        "segment-00000007.arrow",
    ]


def test_nobody_compacts_while_somebody_writes(store: Path) -> None:
    with Writer.open(store), pytest.raises(StoreBusy):
        compact(store)
