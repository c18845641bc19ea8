# SPDX-License-Identifier: Apache-2.0
"""What a run does with trials that ended: rows on its shelf, counted, and only then said.

Contract: as `envkit.run.shelf` has it. A store that cannot be written ends the run with the trials
that wait unsaid: their records and episodes lie beside it, and a process that resumes the run
stores them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from envkit.run.events import Events
from envkit.run.figures import Figures
from envkit.run.rows import Ground
from envkit.run.shelf import Shelf
from envkit.trajectory.errors import BrokenInvariant, Damaged
from envkit.trajectory.head import Head, head_of
from envkit.trajectory.store import Store
from envkit.trajectory.types import Trajectory
from envkit.trajectory.writer import Writer
from envkit.trial.record import RECORD_NAME, TrialRecord

SLICE: Final = 64
"""Rows that are read at once where there are many, so that they need not all fit in memory."""


class Sink:
    """Where the rows of a run go."""

    def __init__(self, writer: Writer, ground: Ground, events: Events) -> None:
        self._writer = writer
        self._shelf = Shelf(writer, ground, _is_kept)
        self._events = events
        self.figures = Figures()
        self._damage: list[str] = []

    @property
    def damage(self) -> list[str]:
        """What of the store is not what was written to it, or could not be written as it was."""
        return [*self._damage, *self._shelf.damage]

    def catch_up(self, records: Iterable[TrialRecord]) -> int:
        """Store what ended before this process and is not stored; how many those were."""
        store = Store(self._writer.directory)
        self._damage += [str(each) for each in store.damage]
        for head in store.heads:
            self._look_at(store, head)
        missing = [each for each in records if each.trial_id not in store]
        for start in range(0, len(missing), SLICE):
            for row in self._shelf.store(missing[start : start + SLICE]):
                self._said(row)
        return len(missing)

    def _look_at(self, store: Store, head: Head) -> None:
        """A row that is there; one that is damaged has ended all the same."""
        try:
            self.figures.add(store.read(head.trajectory_id))
        except (Damaged, BrokenInvariant) as bad:
            self._damage.append(str(bad))
        self._events.ended(head)

    async def write(
        self, ended: asyncio.Queue[TrialRecord | None], say: Callable[[TrialRecord], None]
    ) -> None:
        """Store each record's row as it comes, until None does; ``say`` it once it is durable.

        Raises:
            HarnessError: the store cannot be written.
        """

        async def stored(records: Sequence[TrialRecord], rows: Sequence[Trajectory]) -> None:
            for row in rows:
                self._said(row)
            for record in records:
                say(record)

        await self._shelf.write(ended, stored)

    def _said(self, row: Trajectory) -> None:
        self.figures.add(row)
        self._events.ended(head_of(row))


def _is_kept(record: TrialRecord) -> bool:
    """Whether a process after this one would know that it has ended."""
    return (record.trial_dir / RECORD_NAME).is_file()
