# SPDX-License-Identifier: Apache-2.0
"""Many coroutines that each wait until their row is durable, written together.

Contract: `GroupCommit.add` returns once the row is on the disk, at most a second and one write
after it was called. The write holds up the event loop: the process that writes does nothing else.
"""

from __future__ import annotations

import asyncio

from envkit.trajectory.types import Trajectory
from envkit.trajectory.writer import Writer


class GroupCommit:
    """A writer, for coroutines of one event loop. Give the writer that loop's clock."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._waiting: list[asyncio.Future[None]] = []
        self._timer: asyncio.TimerHandle | None = None

    async def add(self, trajectory: Trajectory) -> None:
        """Write a row, with those that others add meanwhile.

        Raises:
            BrokenInvariant: the row says what cannot be.
            SameRow: something goes by its id already.
            OSError: it could not be written and is not in the store.
        """
        loop = asyncio.get_running_loop()
        try:
            written = self._writer.append(trajectory)
        except OSError as error:
            self._settle(error)
            raise
        if written:
            return self._settle(None)
        durable: asyncio.Future[None] = loop.create_future()
        self._waiting.append(durable)
        if self._timer is None:
            self._timer = loop.call_later(self._writer.due_s or 0.0, self._commit)
        await durable

    def _commit(self) -> None:
        try:
            self._writer.commit()
        except OSError as error:
            self._settle(error)
        else:
            self._settle(None)

    def _settle(self, error: OSError | None) -> None:
        """Tell all who wait."""
        waiting, self._waiting = self._waiting, []
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for each in waiting:
            if each.done():  # its coroutine was cancelled
                continue
            each.set_exception(error) if error else each.set_result(None)
