# SPDX-License-Identifier: Apache-2.0
"""Writing a store: one process at a time, rows in groups, a group durable within a second.

Contract: once `Writer.commit` has named a row it is on the disk, whole, whatever is killed or
loses its power then; before, none of it is there. Nothing that is there is ever changed. A row is
checked before it is taken, so a bad one costs nobody else's group.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from envkit.durable import part_of, write_durably
from envkit.trajectory.columns import CHECKSUM, encode
from envkit.trajectory.errors import SameRow, StoreBusy
from envkit.trajectory.head import head_of
from envkit.trajectory.invariants import check
from envkit.trajectory.segment import Row, encode_segment
from envkit.trajectory.store import Store, last_number, segment_files
from envkit.trajectory.types import Trajectory

WINDOW_S: Final = 1.0
"""How long a row waits at most for others to be written with it."""
GROUP_BYTES: Final = 64 * 2**20
"""A group of this size does not wait."""
LOCK_NAME: Final = ".lock"


class Writer:
    """The one process that adds to a store."""

    def __init__(self, directory: Path, clock: Callable[[], float]) -> None:
        """Of a directory that is locked: use `open`."""
        self.directory = directory
        self._clock = clock
        self._ids = set(Store(directory).ids)
        self._number = last_number(segment_files(directory))
        self._group: list[Row] = []
        self._bytes = 0
        self._began = 0.0

    @classmethod
    @contextmanager
    def open(
        cls, directory: Path, *, clock: Callable[[], float] = time.monotonic
    ) -> Generator[Self]:
        """Write to a store, made where there is none; what is waiting at the end is committed.

        Raises:
            StoreBusy: another process writes to it.
            OSError: the directory cannot be used.
        """
        directory.mkdir(parents=True, exist_ok=True)
        with locked(directory):
            writer = cls(directory, clock)
            yield writer
            writer.commit()

    def __contains__(self, trajectory_id: str) -> bool:
        return trajectory_id in self._ids

    @property
    def due_s(self) -> float | None:
        """Seconds until the group must be committed; None where nothing waits."""
        return max(0.0, self._began + WINDOW_S - self._clock()) if self._group else None

    def append(self, trajectory: Trajectory) -> tuple[str, ...]:
        """Take a row; it is durable once a commit has named it, as this does if it is time for one.

        Raises:
            BrokenInvariant: the row says what cannot be.
            SameRow: something goes by its id already.
            OSError: the group could not be written, this row with it; as `commit` has it.
        """
        row = trajectory.identity.trajectory_id
        check(trajectory)
        if row in self._ids:
            raise SameRow(row, str(self.directory))
        batch = encode(trajectory)
        others = self._group and self._group[0].batch.schema != batch.schema
        done = self.commit() if others else ()  # a file has one schema
        checksum = batch.column(CHECKSUM)[0].as_py()
        self._began = self._began if self._group else self._clock()
        self._group.append(Row(head=head_of(trajectory), checksum=checksum, batch=batch))
        self._bytes += batch.nbytes
        self._ids.add(row)
        return done + self.commit() if self.due_s == 0.0 or self._bytes >= GROUP_BYTES else done

    def commit(self) -> tuple[str, ...]:
        """Write what waits; the ids that are durable now.

        Raises:
            OSError: nothing of the group is stored, and it is forgotten: append it again.
        """
        group, self._group, self._bytes = self._group, [], 0
        if not group:
            return ()
        ids = tuple(row.head.trajectory_id for row in group)
        path = self.directory / f"segment-{self._number + 1:08d}.arrow"
        try:
            write_durably(path, encode_segment(group))
        except BaseException:
            self._ids.difference_update(ids)
            for leftover in (part_of(path), path):
                leftover.unlink(missing_ok=True)
            raise
        self._number += 1
        return ids


@contextmanager
def locked(directory: Path) -> Generator[None]:
    """Hold the right to write to a store; it ends with the process, however that ends.

    What a killed holder left unfinished is removed.

    Raises:
        StoreBusy: another process holds it.
    """
    fd = os.open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(fd, 64, 0).decode(errors="replace").strip()
            raise StoreBusy(str(directory), f"process {holder or 'unknown'}") from error
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        _remove_parts(directory)
        yield
    finally:
        os.close(fd)


def _remove_parts(directory: Path) -> None:
    for part in directory.glob(".segment-*.part"):
        part.unlink()
