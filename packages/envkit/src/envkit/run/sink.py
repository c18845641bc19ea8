# SPDX-License-Identifier: Apache-2.0
"""Rows made durable in groups, and only then said: when a trial has ended, its row is on the disk.

Contract: a row waits at most `WINDOW_S` for others that are written with it; the writing is done in
a thread, so that trials go on meanwhile. A row that is there already is not written again. One that
says what cannot be costs no other: it is named, and its trial has a row without tokens. A store
that cannot be written ends the run with the trials that wait unsaid: their records and episodes lie
beside it, and a process that resumes the run stores them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from envkit.fault import HarnessError
from envkit.run.events import Events
from envkit.run.figures import Figures
from envkit.run.rows import Ground
from envkit.trajectory.errors import BrokenInvariant, Damaged
from envkit.trajectory.head import Head, head_of
from envkit.trajectory.store import Store
from envkit.trajectory.types import Trajectory
from envkit.trajectory.writer import Writer
from envkit.trial.record import RECORD_NAME, TrialRecord

WINDOW_S: Final = 0.5
"""With the write itself a trial is durable within a second."""
SLICE: Final = 64
"""Rows that are read at once where there are many, so that they need not all fit in memory."""


class Sink:
    """Where the rows of a run go."""

    def __init__(self, writer: Writer, ground: Ground, events: Events) -> None:
        self._writer = writer
        self._ground = ground
        self._events = events
        self.figures = Figures()
        self.damage: list[str] = []
        """What of the store is not what was written to it."""

    def catch_up(self, records: Iterable[TrialRecord]) -> int:
        """Store what ended before this process and is not stored; how many those were."""
        store = Store(self._writer.directory)
        self.damage += [str(each) for each in store.damage]
        for head in store.heads:
            self._look_at(store, head)
        missing = [each for each in records if each.trial_id not in store]
        for start in range(0, len(missing), SLICE):
            for row in self._store(missing[start : start + SLICE]):
                self._said(row)
        return len(missing)

    def _look_at(self, store: Store, head: Head) -> None:
        """A row that is there; one that is damaged has ended all the same."""
        try:
            self.figures.add(store.read(head.trajectory_id))
        except (Damaged, BrokenInvariant) as bad:
            self.damage.append(str(bad))
        self._events.ended(head)

    async def write(
        self, ended: asyncio.Queue[TrialRecord | None], say: Callable[[TrialRecord], None]
    ) -> None:
        """Store each record's row as it comes, until None does; ``say`` it once it is durable.

        Raises:
            HarnessError: the store cannot be written.
        """
        going_on = True
        while going_on:
            group, going_on = await _group(ended)
            rows = await asyncio.to_thread(self._store, group)
            for row in rows:
                self._said(row)
            for record in group:
                say(record)

    def _said(self, row: Trajectory) -> None:
        self.figures.add(row)
        self._events.ended(head_of(row))

    def _store(self, group: Sequence[TrialRecord]) -> list[Trajectory]:
        try:
            rows = [self._taken(each) for each in group if self._is_new(each)]
            self._writer.commit()
        except OSError as error:
            raise HarnessError(
                f"{self._writer.directory}: {error.strerror}; make room there, then resume the run"
            ) from error
        return rows

    def _taken(self, record: TrialRecord) -> Trajectory:
        """Its row, in the writer's group; one that says what cannot be gives way to a bare one."""
        row = self._ground.row(record)
        try:
            self._writer.append(row)
        except BrokenInvariant as broken:
            self.damage.append(str(broken))
            row = self._ground.row_without(record, broken)
            self._writer.append(row)
        return row

    def _is_new(self, record: TrialRecord) -> bool:
        """Not of a trial that a process after this one would not know to have ended."""
        kept = (record.trial_dir / RECORD_NAME).is_file()
        return kept and record.trial_id not in self._writer


async def _group(ended: asyncio.Queue[TrialRecord | None]) -> tuple[list[TrialRecord], bool]:
    """Those that end within the window of the first, and whether more may come."""
    loop = asyncio.get_running_loop()
    group: list[TrialRecord] = []
    until: float | None = None
    while True:
        try:
            async with asyncio.timeout_at(until):
                record = await ended.get()
        except TimeoutError:
            return group, True
        if record is None:
            return group, False
        group.append(record)
        until = until or loop.time() + WINDOW_S
