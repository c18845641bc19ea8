# SPDX-License-Identifier: Apache-2.0
"""Reading a store: a directory of segments, each written once and never changed.

Contract: what is damaged is named, by file and row, and costs no other row; nothing is passed over
in silence. `for trajectory in store` gives every good row and then raises for those that were not.
A row that stands twice, as after a compaction that was cut short, is read once; where one copy is
damaged the other is read. What was opened stays readable while others write and compact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from envkit.trajectory.ahead import in_order
from envkit.trajectory.arrow import Batch, Table, pa
from envkit.trajectory.columns import CHECKSUM, checksum, decode, decode_stream
from envkit.trajectory.errors import BrokenInvariant, Damaged, NoSuchRow
from envkit.trajectory.head import Head
from envkit.trajectory.invariants import check
from envkit.trajectory.segment import Place, Segment, read_row, read_rows, read_segment
from envkit.trajectory.types import Stream, Trajectory

NAME: Final = re.compile(r"segment-(\d{8})(?:-(\d{8}))?\.arrow")
"""A segment, or several that were merged: the first and the last number."""

CHUNK_BYTES: Final = 2**21
"""Of rows that are read at once."""

type Bad = Damaged | BrokenInvariant


class Store:
    """The rows of a directory, in the order they were written."""

    def __init__(self, directory: Path) -> None:
        """Open what is there now.

        Raises:
            OSError: the directory cannot be read.
            OtherSchema: a segment is of another major version.
        """
        self.directory = directory
        self.segments: tuple[Segment, ...] = ()
        self._copies: dict[str, list[Place]] = {}
        self.refresh()

    def refresh(self) -> None:
        """Take in what was written since."""
        known = {segment.file: segment for segment in self.segments}
        self.segments = tuple(
            known.get(file) or segment
            for file in segment_files(self.directory)
            if (segment := known.get(file) or _read_if_there(file))
        )
        copies: dict[str, list[Place]] = {}
        for segment in self.segments:
            for place in segment.places:
                copies.setdefault(place.trajectory_id, []).append(place)
        self._copies = copies  # at once: threads of a scan read it meanwhile

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of all rows."""
        return tuple(self._copies)

    @property
    def heads(self) -> tuple[Head, ...]:
        """What can be known of each row without reading it."""
        return tuple(copies[0].head for copies in self._copies.values())

    @property
    def damage(self) -> tuple[Damaged, ...]:
        """What is wrong with files as a whole, and ids that stand for different rows."""
        frames = [each for segment in self.segments for each in segment.damage]
        return (*frames, *self.conflicts)

    @property
    def conflicts(self) -> tuple[Damaged, ...]:
        """Ids that stand for different rows; nothing here writes such."""
        return tuple(_conflict(copies) for copies in self._copies.values() if _differ(copies))

    def __len__(self) -> int:
        return len(self._copies)

    def __contains__(self, trajectory_id: str) -> bool:
        return trajectory_id in self._copies

    def read(self, trajectory_id: str) -> Trajectory:
        """One row.

        Raises:
            NoSuchRow: nothing goes by this id.
            Damaged: its bytes are not the ones that were written.
            BrokenInvariant: it says what cannot be.
        """
        return _checked(self.batch(trajectory_id))

    def read_stream(self, trajectory_id: str) -> Stream:
        """The tokens of one row, without alternatives and the rest; raises as `batch` does."""
        return decode_stream(self.batch(trajectory_id))

    def batch(self, trajectory_id: str) -> Batch:
        """The columns of one row, as they are stored; bytes proven, invariants not asked.

        Raises:
            NoSuchRow: nothing goes by this id.
            Damaged: its bytes are not the ones that were written.
        """
        try:
            return _first_good(self._places(trajectory_id))
        except FileNotFoundError:  # a compaction took the segment's place
            self.refresh()
            return _first_good(self._places(trajectory_id))

    def batches(self) -> Iterator[Batch | Damaged]:
        """The columns of every row; a damaged row is given as what it is."""
        return in_order(self._read_chunk, list(self._chunks()))

    def table(self, columns: list[str]) -> Table:
        """Some columns of every row.

        Raises:
            Damaged: a row's bytes are not the ones that were written.
        """
        chosen: list[Batch] = []
        for batch in self.batches():
            if isinstance(batch, Damaged):
                raise batch
            chosen.append(batch.select(columns))
        return pa.Table.from_batches(chosen)

    def scan(self) -> Iterator[Trajectory | Bad]:
        """Every row, or what is wrong with it; first what is wrong with files."""
        yield from self.damage
        for batch in self.batches():
            if isinstance(batch, Damaged):
                yield batch
                continue
            try:
                yield _checked(batch)
            except BrokenInvariant as broken:
                yield broken

    def __iter__(self) -> Iterator[Trajectory]:
        """Every good row.

        Raises:
            ExceptionGroup: after the last one, where something is damaged: what.
        """
        bad: list[Bad] = []
        for each in self.scan():
            if isinstance(each, Trajectory):
                yield each
            else:
                bad.append(each)
        if bad:
            raise ExceptionGroup(f"{self.directory}: {len(bad)} damaged", bad)

    def _places(self, trajectory_id: str) -> list[Place]:
        try:
            return self._copies[trajectory_id]
        except KeyError:
            raise NoSuchRow(trajectory_id, str(self.directory)) from None

    def _chunks(self) -> Iterator[list[Place]]:
        """Neighbouring rows, each that is to be read, about as many bytes at a time."""
        for segment in self.segments:
            chunk = list[Place]()
            for place in segment.places:
                if chunk and _too_far(chunk, place):
                    yield chunk
                    chunk = []
                if self._copies[place.trajectory_id][0] is place:
                    chunk.append(place)
            if chunk:
                yield chunk

    def _read_chunk(self, places: list[Place]) -> list[Batch | Damaged]:
        try:
            read = read_rows(places)
        except FileNotFoundError:  # a compaction took its place: each row by its id
            return [self._again(place) for place in places]
        return [
            self._again(place) if isinstance(each, Damaged) else each
            for place, each in zip(places, read, strict=True)
        ]

    def _again(self, place: Place) -> Batch | Damaged:
        row = place.trajectory_id
        try:
            return self.batch(row)
        except Damaged as damaged:
            return damaged
        except NoSuchRow:
            return Damaged(str(place.file), row, "the file is gone, and no other one has it")


def segment_files(directory: Path) -> list[Path]:
    """The segments in a directory, in the order they were written."""
    found = ((NAME.fullmatch(each.name), each) for each in directory.iterdir())
    return [file for _, file in sorted((_order(name), file) for name, file in found if name)]


def last_number(files: list[Path]) -> int:
    """The highest number that any of them carries; 0 for none."""
    matches = (NAME.fullmatch(file.name) for file in files)
    return max((int(match[2] or match[1]) for match in matches if match), default=0)


def scan_segment(file: Path) -> Iterator[Trajectory | Bad]:
    """Every row of one segment, verified, or what is wrong with it; first what is with the file.

    Raises:
        OSError: the file cannot be read.
        OtherSchema: another major version wrote it.
    """
    segment = read_segment(file)
    yield from segment.damage
    for place in segment.places:
        try:
            yield verify_row(place)
        except (BrokenInvariant, Damaged) as bad:
            yield bad


def verify_row(place: Place) -> Trajectory:
    """Read a row and check all that can be checked of it, its column ``checksum`` too.

    Raises:
        Damaged: its bytes or its values are not the ones that were written.
        BrokenInvariant: it says what cannot be.
    """
    batch = read_row(place)
    row = place.trajectory_id
    if not batch.column(CHECKSUM)[0].as_py() == checksum(batch) == place.checksum:
        raise Damaged(str(place.file), row, "its values are not the ones that were written")
    return _checked(batch)


def _checked(batch: Batch) -> Trajectory:
    try:
        trajectory = decode(batch)
    except (TypeError, ValueError, KeyError) as error:
        row = str(batch.column("trajectory_id")[0].as_py())
        raise BrokenInvariant(row, "columns", f"hold no trajectory: {error}") from error
    check(trajectory)
    return trajectory


def _too_far(chunk: list[Place], place: Place) -> bool:
    """Whether a row is to be read with the next ones: too many bytes, or not behind the last."""
    last = chunk[-1]
    near = place.start == last.start + last.length and place.schema is last.schema
    return not near or place.start + place.length - chunk[0].start > CHUNK_BYTES


def _read_if_there(file: Path) -> Segment | None:
    try:
        return read_segment(file)
    except FileNotFoundError:  # a compaction removed it after the directory was listed
        return None


def _first_good(copies: list[Place]) -> Batch:
    for place in copies[:-1]:
        try:
            return read_row(place)
        except (Damaged, FileNotFoundError):
            continue
    return read_row(copies[-1])


def _order(match: re.Match[str]) -> tuple[int, int]:
    first, last = int(match[1]), int(match[2] or match[1])
    return first, -last


def _differ(copies: list[Place]) -> bool:
    return len({place.checksum for place in copies}) > 1


def _conflict(copies: list[Place]) -> Damaged:
    row = copies[0].trajectory_id
    others = ", ".join(place.file.name for place in copies[1:])
    return Damaged(str(copies[0].file), row, f"stands otherwise in {others}; the first is read")
