# SPDX-License-Identifier: Apache-2.0
"""Rows made durable in groups: when a trial has ended, its row is on the disk.

Contract: a row waits at most `WINDOW_S` for others that are written with it; the writing is done in
a thread, so that trials go on meanwhile. A row that is there already is not written again. One that
says what cannot be costs no other: it is named, and its trial has a row without tokens. What cannot
be written is raised, with nothing of its group stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from envkit.fault import HarnessError
from envkit.run.rows import Ground
from envkit.trajectory.errors import BrokenInvariant
from envkit.trajectory.types import Trajectory
from envkit.trajectory.writer import Writer
from envkit.trial.record import TrialRecord

WINDOW_S: Final = 0.5
"""With the write itself a trial is durable within a second."""

type Stored = Callable[[Sequence[TrialRecord], Sequence[Trajectory]], Awaitable[None]]
"""Told of trials whose rows are durable, and of the rows that are new."""


class Shelf:
    """Where the rows of trials go."""

    def __init__(
        self, writer: Writer, ground: Ground, takes: Callable[[TrialRecord], bool] = lambda _: True
    ) -> None:
        """Trials that it does not take have no row."""
        self._writer = writer
        self._ground = ground
        self._takes = takes
        self.damage: list[str] = []
        """Rows that could not be as their trials left them."""

    def __contains__(self, trial_id: str) -> bool:
        return trial_id in self._writer

    async def write(self, ended: asyncio.Queue[TrialRecord | None], stored: Stored) -> None:
        """Store each record's row as it comes, until None does.

        Raises:
            HarnessError: the store cannot be written.
        """
        going_on = True
        while going_on:
            group, going_on = await _group(ended)
            await stored(group, await asyncio.to_thread(self.store, group))

    def store(self, group: Sequence[TrialRecord]) -> list[Trajectory]:
        """Store those that have no row yet; the new rows. Raises as `write` does."""
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
        return self._takes(record) and record.trial_id not in self._writer


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
