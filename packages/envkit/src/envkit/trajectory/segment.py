# SPDX-License-Identifier: Apache-2.0
"""One file of the store: an Arrow IPC file, written once and never appended to.

Contract: no byte that was not written is ever handed to Arrow, let alone to a trainer. Each row is
a record batch of its own, compressed by lz4, and the index at the head has its length and the
CRC-32 of its bytes; so damage to a row is known by its id and costs no other. Files are read by
position and not mapped: a mapped file that somebody cuts off ends its reader.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from envkit.trajectory.arrow import Batch, Buffer, Schema, pa
from envkit.trajectory.crc import crc32
from envkit.trajectory.errors import Damaged
from envkit.trajectory.head import Head
from envkit.trajectory.index import SCHEMA, Index, read_index, with_index
from envkit.trajectory.plain import to_columns

_MAGIC: Final = b"ARROW1\0\0"
_TAIL: Final = b"ARROW1"
_END: Final = b"\xff\xff\xff\xff\0\0\0\0"
_PREFIX: Final = 8
"""Bytes before a message's metadata: a marker and its length."""
_LZ4: Final = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
_HERE: Final = pa.ipc.IpcReadOptions(use_threads=False)
"""A thread for each column of a row costs four times what reading it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row as it is about to be written."""

    head: Head
    checksum: int
    batch: Batch


class Place(NamedTuple):
    """Where in which file a row lies."""

    file: Path
    start: int
    schema: Schema
    rows: Index
    number: int
    """Among the rows."""

    @property
    def trajectory_id(self) -> str:
        return self.rows.heads["trajectory_id"][self.number]

    @property
    def head(self) -> Head:
        """What can be known of the row without reading it."""
        return self.rows.head(self.number)

    @property
    def length(self) -> int:
        """Bytes of its message."""
        return self.rows.lengths[self.number]

    @property
    def checksum(self) -> int:
        """Equal where two rows hold the same."""
        return self.rows.checksums[self.number]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """What a file holds, and what is wrong with it as a whole."""

    file: Path
    version: str
    """Schema and version it was written by; empty where nothing of it can be read."""
    places: tuple[Place, ...]
    damage: tuple[Damaged, ...]
    """Of its frame; what that costs, the message says."""


def encode_segment(rows: Sequence[Row], version: str = SCHEMA) -> Buffer:
    """The bytes of a file that holds these rows, at least one, all of one schema."""
    schema = rows[0].batch.schema
    messages = [_message(row.batch) for row in rows]
    index = Index(
        heads=to_columns([row.head for row in rows]),
        lengths=[each.size for each in messages],
        crc32s=list(accumulate(messages, lambda begun, each: crc32(each, begun), initial=0)),
        checksums=[row.checksum for row in rows],
    )
    whole = with_index(schema, index, version)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, whole, options=_LZ4) as writer:
        for row in rows:
            writer.write_batch(row.batch)
    data = sink.getvalue()
    start = len(_MAGIC) + whole.serialize().size
    if data.slice(start, sum(each.size for each in messages)) != pa.py_buffer(b"".join(messages)):
        raise AssertionError("Arrow wrote a row otherwise the second time")
    return data


def _message(batch: Batch) -> Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_LZ4) as writer:
        writer.write_batch(batch)
        end = sink.tell()
    start = batch.schema.serialize().size
    return sink.getvalue().slice(start, end - start)


# --- reading --------------------------------------------------------------------------------------


def read_row(place: Place) -> Batch:
    """The batch of a row.

    Raises:
        Damaged: its bytes are not the ones that were written, or are not there.
        OSError: the file cannot be read.
    """
    (read,) = read_rows([place])
    if isinstance(read, Damaged):
        raise read
    return read


def read_rows(places: Sequence[Place]) -> list[Batch | Damaged]:
    """The batches of neighbouring rows of one file, or what is wrong with one.

    Raises:
        OSError: the file cannot be read.
    """
    first, last = places[0], places[-1]
    columns = first.schema.serialize()
    whole = memoryview(np.empty(columns.size + last.start + last.length - first.start, np.uint8))
    whole[: columns.size] = memoryview(columns).cast("B")
    rows = whole[columns.size :]
    read = _read_into(rows, first.file, first.start)
    if read < len(rows) or not _proven(rows, first, last):
        return [_row_alone(place, rows[place.start - first.start : read]) for place in places]
    stream = pa.ipc.open_stream(pa.py_buffer(whole), options=_HERE)
    return [stream.read_next_batch() for _ in places]


def _proven(data: memoryview, first: Place, last: Place) -> bool:
    """Whether the bytes from one row to another are those that were written."""
    crc32s = first.rows.crc32s
    return crc32(data, crc32s[first.number]) == crc32s[last.number + 1]


def _row_alone(place: Place, data: memoryview) -> Batch | Damaged:
    """The batch of a row near which something is wrong; ``data`` begins with it."""
    if len(data) < place.length:
        return Damaged(str(place.file), place.trajectory_id, "the file ends before it")
    if not _proven(data[: place.length], place, place):
        problem = "its bytes are not the ones that were written"
        return Damaged(str(place.file), place.trajectory_id, problem)
    return pa.ipc.read_record_batch(pa.py_buffer(bytes(data[: place.length])), place.schema)


def _read_into(into: memoryview, file: Path, start: int) -> int:
    """Fill a buffer from a place in a file; how far it went."""
    fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        read = 0
        while read < len(into) and (more := os.preadv(fd, [into[read:]], start + read)):
            read += more
        return read
    finally:
        os.close(fd)


def read_segment(file: Path) -> Segment:
    """What a file holds, found by its head; by its footer where the head is damaged.

    Raises:
        OSError: the file cannot be read.
        OtherSchema: another major version wrote it.
    """
    fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _Frame(fd, file).segment()
    finally:
        os.close(fd)


class _Frame:
    """The parts of a file that are not rows."""

    def __init__(self, fd: int, file: Path) -> None:
        self.fd, self.file = fd, file
        self.size = os.fstat(fd).st_size
        self.version = ""
        self.damage: list[Damaged] = []

    def segment(self) -> Segment:
        places = self.by_head(0)
        if places is None:
            self.note("its head is damaged; rows were found by its footer")
            places = self.by_footer()
        if places is None:
            self.damage[-1] = self.damaged("neither its head nor its footer can be read")
        return Segment(
            file=self.file,
            version=self.version,
            places=tuple(places or ()),
            damage=tuple(self.damage),
        )

    def by_head(self, base: int) -> list[Place] | None:
        """Rows by the head at ``base``; None where that is damaged."""
        prefix = self.read(base, len(_MAGIC) + _PREFIX)
        start = base + len(prefix) + int.from_bytes(prefix[-4:], "little")
        if prefix[:-4] != _MAGIC + _END[:4] or start > self.size:
            return None
        found = self.schema(self.read(base + len(_MAGIC), start - base - len(_MAGIC)))
        if found is None:
            return None
        schema, index = found
        places, end = self.places(schema, index, start)
        self.check_end(end)
        return places + self.after(end)

    def by_footer(self) -> list[Place] | None:
        """Rows by the footer's copy of the schema; None where that is damaged too."""
        try:
            reader = pa.ipc.open_file(pa.BufferReader(self.read(0, self.size)))
        except (pa.ArrowException, OSError, ValueError):
            return None
        found = self.indexed(reader.schema)
        if found is None:
            return None
        schema, index = found
        end = self.footer_start() - len(_END)
        return self.places(schema, index, end - sum(index.lengths))[0]

    def places(self, schema: Schema, index: Index, start: int) -> tuple[list[Place], int]:
        """The rows of an index, and where the last one ends."""
        *starts, end = accumulate(index.lengths, initial=start)
        file = self.file
        return [Place(file, at, schema, index, n) for n, at in enumerate(starts)], end

    def schema(self, message: bytes) -> tuple[Schema, Index] | None:
        try:
            return self.indexed(pa.ipc.read_schema(pa.py_buffer(message)))
        except (pa.ArrowException, OSError, ValueError):
            return None

    def indexed(self, schema: Schema) -> tuple[Schema, Index] | None:
        """The columns as they are laid out on this machine, and the rows."""
        try:
            version, index = read_index(schema, str(self.file))
        except (Damaged, UnicodeDecodeError):
            return None
        self.version = version
        return pa.schema([(each.name, each.type) for each in schema]), index

    def check_end(self, end: int) -> None:
        """The rows are followed by the footer and by nothing else."""
        if self.size < end:
            self.note(f"is cut off: {self.size} bytes, its rows alone have {end}")
        elif self.read(end, len(_END)) != _END or self.footer_start() != end + len(_END):
            self.note("its footer is damaged, or something was added behind it")

    def footer_start(self) -> int:
        tail = self.read(max(self.size - 10, 0), 10)
        length = int.from_bytes(tail[:4], "little", signed=True)
        return self.size - 10 - length if tail[4:] == _TAIL else -1

    def after(self, end: int) -> list[Place]:
        """Rows of a segment that somebody added behind this one."""
        if self.footer_start() == end + len(_END):
            return []
        rest = self.read(end, max(self.size - end, 0))
        at = rest.find(_MAGIC + _END[:4])
        return (self.by_head(end + at) or []) if at >= 0 else []

    def read(self, start: int, length: int) -> bytes:
        return os.pread(self.fd, length, start)

    def note(self, problem: str) -> None:
        self.damage.append(self.damaged(problem))

    def damaged(self, problem: str) -> Damaged:
        return Damaged(str(self.file), "", problem)
