# SPDX-License-Identifier: Apache-2.0
"""Merging small segments into large ones.

Contract: at every instant each row stands in a durable file. Old files are removed only once the
merged one is durable; what is killed in between leaves rows twice, which readers give once, and
the next compaction finishes. A segment with anything wrong in it is left alone and named; one that
another minor version wrote is left alone, for it may say what this version cannot write.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from envkit.durable import sync_directory, write_durably
from envkit.trajectory.errors import TrajectoryError
from envkit.trajectory.index import SCHEMA
from envkit.trajectory.segment import Row, Segment, encode_segment, read_row
from envkit.trajectory.store import NAME, Store, verify_row
from envkit.trajectory.writer import locked

TARGET_BYTES: Final = 256 * 2**20
"""Segments are merged up to about this size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What a compaction did."""

    merged: tuple[Path, ...]
    removed: tuple[Path, ...]
    left: tuple[TrajectoryError, ...]
    """Why segments were left as they are."""


def compact(directory: Path, *, target_bytes: int = TARGET_BYTES) -> Compacted:
    """Merge neighbouring segments.

    Raises:
        StoreBusy: another process writes to the store.
        OSError: something could not be written or removed; no row is lost.
    """
    merged, removed, left = list[Path](), list[Path](), list[TrajectoryError]()
    with locked(directory):
        store = Store(directory)
        left += store.conflicts
        for run in _runs(_mergeable(store), target_bytes, left):
            path = _merge(directory, run)
            old = [segment.file for segment in run if segment.file != path]
            _remove(directory, old)
            merged.append(path)
            removed += old
    return Compacted(merged=tuple(merged), removed=tuple(removed), left=tuple(left))


def _mergeable(store: Store) -> tuple[Segment, ...]:
    """Segments of this very version without a row that stands otherwise in another one."""
    rows = {each.row for each in store.conflicts}
    return tuple(
        segment
        for segment in store.segments
        if segment.version == SCHEMA
        and rows.isdisjoint(place.trajectory_id for place in segment.places)
    )


def _runs(
    segments: tuple[Segment, ...], target_bytes: int, left: list[TrajectoryError]
) -> Iterator[list[Segment]]:
    """Neighbours to merge: sound, of one schema, together about as large as is wanted."""
    run, size = list[Segment](), 0
    for segment in segments:
        sound, bytes_ = _is_sound(segment, left), segment.file.stat().st_size
        fits = not run or (_schema(run[0]) == _schema(segment) and size + bytes_ <= target_bytes)
        if run and not (sound and fits):
            if len(run) > 1:
                yield run
            run, size = [], 0
        if sound:
            run, size = [*run, segment], size + bytes_
    if len(run) > 1:
        yield run


def _is_sound(segment: Segment, left: list[TrajectoryError]) -> bool:
    bad: list[TrajectoryError] = list(segment.damage)
    for place in segment.places:
        try:
            verify_row(place)
        except TrajectoryError as error:
            bad.append(error)
    left += bad
    return not bad and bool(segment.places)


def _schema(segment: Segment) -> object:
    return segment.version, segment.places[0].schema


def _merge(directory: Path, run: list[Segment]) -> Path:
    rows: dict[str, Row] = {}
    for place in (place for segment in run for place in segment.places):
        row = Row(head=place.head, checksum=place.checksum, batch=read_row(place))
        rows.setdefault(place.trajectory_id, row)
    numbers = [NAME.fullmatch(segment.file.name) for segment in run]
    first = min(int(match[1]) for match in numbers if match)
    last = max(int(match[2] or match[1]) for match in numbers if match)
    path = directory / f"segment-{first:08d}-{last:08d}.arrow"
    write_durably(path, encode_segment(list(rows.values()), run[0].version))
    return path


def _remove(directory: Path, files: list[Path]) -> None:
    for file in files:
        file.unlink()
    sync_directory(directory)
