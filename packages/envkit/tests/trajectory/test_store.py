# SPDX-License-Identifier: Apache-2.0
"""The store: what was written is read, what is damaged is named and costs nothing else."""

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

from envkit.trajectory.columns import CHECKSUM, encode
from envkit.trajectory.errors import BrokenInvariant, Damaged, NoSuchRow, OtherSchema
from envkit.trajectory.head import head_of
from envkit.trajectory.segment import Row, Segment, encode_segment, read_segment
from envkit.trajectory.store import Store, segment_files, verify_row
from envkit.trajectory.types import Trajectory
from envkit.trajectory.writer import Writer

from .rows import same, trajectory, with_stream

ROWS = tuple(trajectory(f"task__{number:03d}", seed=number, turns=2) for number in range(3))


@contextmanager
def writing(directory: Path) -> Iterator[Writer]:
    with Writer.open(directory, clock=lambda: 0.0) as writer:
        yield writer


def write(directory: Path, *rows: Trajectory) -> Path:
    """All of them in one segment."""
    with writing(directory) as writer:
        for row in rows:
            writer.append(row)
    return segment_files(directory)[-1]


def all_same(read: Iterable[Trajectory], written: Iterable[Trajectory]) -> bool:
    return all(same(*pair) for pair in zip(read, written, strict=True))


def encoded(row: Trajectory, change: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None):
    batch = encode(row)
    batch = change(batch) if change else batch
    checksum = batch.column(CHECKSUM)[0].as_py()
    return Row(head=head_of(row), checksum=checksum, batch=batch)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    directory = tmp_path / "trajectories"
    write(directory, *ROWS)
    return directory


def test_rows_are_read_in_the_order_they_were_written(store: Path) -> None:
    more = trajectory("another__000", seed=9)
    write(store, more)
    assert Store(store).ids == (*(row.identity.trajectory_id for row in ROWS), "another__000")
    for read, written in zip(Store(store), [*ROWS, more], strict=True):
        assert same(read, written)


def test_a_row_is_read_by_its_id(store: Path) -> None:
    opened = Store(store)
    assert same(opened.read("task__001"), ROWS[1])
    assert same(opened.read_stream("task__002"), ROWS[2].episode.stream)
    with pytest.raises(NoSuchRow, match="'task__009'"):
        opened.read("task__009")


def test_heads_tell_what_rows_came_to_without_reading_them(store: Path) -> None:
    (file,) = segment_files(store)
    damage_rows(file)
    assert Store(store).heads == tuple(head_of(row) for row in ROWS)


def test_some_columns_of_all_rows_are_a_table(store: Path) -> None:
    table = Store(store).table(["trajectory_id", "reward"])
    assert table.column("trajectory_id").to_pylist() == [r.identity.trajectory_id for r in ROWS]


def test_any_arrow_reader_reads_a_segment(store: Path) -> None:
    (file,) = segment_files(store)
    with pa.memory_map(str(file)) as source:
        table = pa.ipc.open_file(source).read_all()
    table.validate(full=True)
    assert table.num_rows == len(ROWS)
    assert table.column("token_ids")[1].as_py() == ROWS[1].episode.stream.token_ids.tolist()


def test_rows_written_later_are_seen_when_asked_for(store: Path) -> None:
    opened = Store(store)
    write(store, trajectory("later__000"))
    assert "later__000" not in opened
    opened.refresh()
    assert same(opened.read("later__000"), trajectory("later__000"))


# --- damage ---------------------------------------------------------------------------------------


def damage_rows(file: Path) -> None:
    data = bytearray(file.read_bytes())
    for place in read_segment(file).places:
        data[place.start + place.length // 2] ^= 1
    file.write_bytes(data)


def test_each_flipped_byte_is_named_or_harmless_and_costs_no_other_row(tmp_path: Path) -> None:
    rows = tuple(trajectory(f"t__{number}", seed=number, turns=1) for number in range(2))
    file = write(tmp_path, *rows)
    whole, segment = file.read_bytes(), read_segment(file)
    step = 61  # coprime to the padding to 8, so each place in a word has its turn
    for place in range(0, len(whole), step):
        data = bytearray(whole)
        data[place] ^= 1 << (place % 8)
        file.write_bytes(data)
        hit = owner(segment, place)
        read = [verified(each) for each in Store(tmp_path).scan()]
        good = {each.identity.trajectory_id: each for each in read if isinstance(each, Trajectory)}
        bad = [each for each in read if isinstance(each, Damaged)]
        expected = {r.identity.trajectory_id: r for r in rows if r.identity.trajectory_id != hit}
        assert good.keys() == expected.keys(), place
        assert all(same(good[name], expected[name]) for name in good), place
        assert {each.row for each in bad} - {""} == ({hit} - {""}), place


def verified(each: object) -> object:
    assert isinstance(each, Trajectory | Damaged), each
    return each


def owner(segment: Segment, place: int) -> str:
    """The row a byte belongs to, empty for the frame."""
    for each in segment.places:
        if each.start <= place < each.start + each.length:
            return each.trajectory_id
    return ""


def test_a_file_cut_off_anywhere_gives_the_rows_that_are_whole(tmp_path: Path) -> None:
    file = write(tmp_path, *ROWS)
    whole, places = file.read_bytes(), read_segment(file).places
    for length in range(0, len(whole), 331):
        file.write_bytes(whole[:length])
        store = Store(tmp_path)
        read = list(store.scan())
        head_is_whole = length >= places[0].start
        kept = [p for p in places if head_is_whole and p.start + p.length <= length]
        good = [each for each in read if isinstance(each, Trajectory)]
        assert [g.identity.trajectory_id for g in good] == [p.trajectory_id for p in kept]
        assert store.damage, length
        assert str(file) in str(store.damage[0])


def test_a_segment_that_another_was_added_to_is_named_and_gives_the_rows_of_both(
    tmp_path: Path,
) -> None:
    first, second = write(tmp_path, ROWS[0]), write(tmp_path, *ROWS[1:])
    first.write_bytes(first.read_bytes() + second.read_bytes())
    second.unlink()
    store = Store(tmp_path)
    assert [str(each) for each in store.damage] == [
        f"{first}: its footer is damaged, or something was added behind it"
    ]
    good = [each for each in store.scan() if isinstance(each, Trajectory)]
    assert all_same(good, ROWS)


def test_the_loop_over_a_store_gives_every_good_row_and_then_says_what_is_damaged(
    store: Path,
) -> None:
    (file,) = segment_files(store)
    place = read_segment(file).places[1]
    data = bytearray(file.read_bytes())
    data[place.start + place.length - 9] ^= 1
    file.write_bytes(data)
    read: list[str] = []
    with pytest.raises(ExceptionGroup) as caught:
        read += [each.identity.trajectory_id for each in list_until_raised(Store(store), read)]
    assert read == ["task__000", "task__002"]
    (damaged,) = caught.value.exceptions
    assert isinstance(damaged, Damaged)
    assert (damaged.file, damaged.row) == (str(file), "task__001")


def list_until_raised(store: Store, into: list[str]) -> list[Trajectory]:
    for each in store:
        into.append(each.identity.trajectory_id)
    return []


def test_one_broken_file_costs_no_other_file(tmp_path: Path) -> None:
    broken, _ = write(tmp_path, ROWS[0]), write(tmp_path, ROWS[1])
    broken.write_bytes(b"no Arrow at all")
    store = Store(tmp_path)
    assert store.ids == ("task__001",)
    assert "neither its head nor its footer" in str(store.damage[0])


@pytest.mark.parametrize("part", ["head", "footer"])
def test_one_damaged_copy_of_the_index_costs_no_row(store: Path, part: str) -> None:
    (file,) = segment_files(store)
    data = bytearray(file.read_bytes())
    find = data.find if part == "head" else data.rfind
    data[find(b"task__001")] ^= 1
    file.write_bytes(data)
    opened = Store(store)
    assert bool(opened.damage) == (part == "head")
    assert len([each for each in opened.scan() if isinstance(each, Trajectory)]) == len(ROWS)


def test_a_row_that_says_what_cannot_be_is_refused_by_field(tmp_path: Path) -> None:
    ids = ROWS[1].episode.stream.token_ids.copy()
    ids[-1] = -5
    rows = [encoded(ROWS[0]), encoded(with_stream(ROWS[1], token_ids=ids))]
    (tmp_path / "segment-00000001.arrow").write_bytes(encode_segment(rows))
    good, bad = Store(tmp_path).scan()
    assert same(good, ROWS[0])
    assert isinstance(bad, BrokenInvariant)
    assert (bad.row, bad.field) == ("task__001", "episode.stream.token_ids")


def test_values_that_were_changed_and_sealed_again_do_not_match_their_checksum(
    tmp_path: Path,
) -> None:
    def change(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.set_column(batch.schema.names.index("reward"), "reward", pa.array([0.75]))

    file = tmp_path / "segment-00000001.arrow"
    file.write_bytes(encode_segment([encoded(ROWS[0], change)]))
    (place,) = read_segment(file).places
    with pytest.raises(Damaged, match="its values are not the ones"):
        verify_row(place)


# --- versions -------------------------------------------------------------------------------------


def versioned(directory: Path, version: str, row: Row) -> Store:
    (directory / "segment-00000001.arrow").write_bytes(encode_segment([row], version))
    return Store(directory)


def test_another_minor_is_read(tmp_path: Path) -> None:
    row = encoded(ROWS[0], lambda b: b.append_column("mood", pa.array(["good"])))
    assert same(versioned(tmp_path, "envkit.trajectory/1.9", row).read("task__000"), ROWS[0])
    row = encoded(ROWS[0], lambda b: b.drop_columns(["loss_live"]))
    assert same(versioned(tmp_path, "envkit.trajectory/1.0", row).read("task__000"), ROWS[0])


@pytest.mark.parametrize("version", ["envkit.trajectory/2.0", "other/1.0"])
def test_another_major_is_refused_and_both_are_named(tmp_path: Path, version: str) -> None:
    with pytest.raises(OtherSchema, match=rf"'{version}'.*'envkit\.trajectory/1\.0'"):
        versioned(tmp_path, version, encoded(ROWS[0]))


# --- rows that stand twice ------------------------------------------------------------------------


def test_a_row_that_stands_twice_is_read_once_from_whichever_copy_is_good(store: Path) -> None:
    (file,) = segment_files(store)
    (store / "segment-00000002.arrow").write_bytes(file.read_bytes())
    damage_rows(file)
    opened = Store(store)
    assert opened.damage == ()
    assert all_same(opened, ROWS)
    assert same(opened.read("task__001"), ROWS[1])


def test_an_id_that_stands_for_different_rows_is_named(store: Path) -> None:
    other = replace(ROWS[0], outcome=replace(ROWS[0].outcome, loss_live=False))
    (store / "segment-00000002.arrow").write_bytes(encode_segment([encoded(other)]))
    opened = Store(store)
    assert [each.row for each in opened.damage] == ["task__000"]
    assert same(opened.read("task__000"), ROWS[0])


def test_rows_of_many_chunks_come_in_order_and_a_damaged_one_costs_no_neighbour(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = [trajectory(f"more__{number:03d}", seed=number, turns=2) for number in range(9)]
    file = write(store, *more)
    data, place = bytearray(file.read_bytes()), read_segment(file).places[4]
    data[place.start + place.length // 2] ^= 1
    file.write_bytes(data)
    monkeypatch.setattr("envkit.trajectory.store.CHUNK_BYTES", 2 * place.length + 100)
    read = list(Store(store).scan())
    assert [getattr(each, "row", "") for each in read if isinstance(each, Damaged)] == ["more__004"]
    good = [each for each in read if isinstance(each, Trajectory)]
    written = [*ROWS, *(row for row in more if row.identity.trajectory_id != "more__004")]
    assert all(same(*pair) for pair in zip(good, written, strict=True))


def test_a_scan_that_nobody_goes_on_with_ends_its_threads(store: Path) -> None:
    for number in range(9):
        write(store, trajectory(f"more__{number}", seed=number))
    scan = Store(store).scan()
    next(scan)
    scan.close()
    assert not [each for each in threading.enumerate() if each.name.startswith("trajectories")]


def test_a_reader_goes_on_while_its_files_are_merged(store: Path) -> None:
    opened = Store(store)
    (file,) = segment_files(store)
    os.rename(file, store / "segment-00000001-00000004.arrow")
    assert all_same(opened, ROWS)


def test_threads_find_every_row_at_every_line_of_a_refresh(store: Path) -> None:
    opened, found = Store(store), set[int]()

    def look(frame: FrameType, *_: object) -> Any:
        if frame.f_code is not Store.refresh.__code__:
            return None
        found.add(len(opened))
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        opened.refresh()
    finally:
        sys.settrace(before)
    assert found == {len(ROWS)}


def test_a_row_whose_file_was_taken_away_is_named_and_costs_no_other(tmp_path: Path) -> None:
    gone, _ = write(tmp_path, ROWS[0]), write(tmp_path, ROWS[1])
    opened = Store(tmp_path)
    gone.unlink()
    bad, good = opened.scan()
    assert str(bad).startswith(f"{gone}: trajectory 'task__000': the file is gone")
    assert same(good, ROWS[1])
    with pytest.raises(NoSuchRow, match="'task__000'"):
        opened.read("task__000")
