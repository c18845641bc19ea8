# SPDX-License-Identifier: Apache-2.0
"""Rows made durable, in a thread, and the tokenizer that their text can be made of.

Contract: when `Keep.add` returns the rows are on the disk. Rows that could not be written may be
added again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from envkit.agent.hear import keep_copy
from envkit.agent.tokens import ChatTemplate
from envkit.fault import HarnessError
from envkit.trajectory.invariants import check
from envkit.trajectory.types import Trajectory
from envkit.trajectory.writer import Writer

STORE: Final = "trajectories"


class Keep:
    """The store of one server; use `Keep.open`."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._lock = asyncio.Lock()

    @classmethod
    @contextmanager
    def open(cls, root: Path, template: ChatTemplate) -> Generator[Self]:
        """The store under ``root``, made where there is none; it is gone on with where there is.

        Raises:
            HarnessError: the directory cannot be used, or another process writes there.
        """
        try:
            root.mkdir(parents=True, exist_ok=True)
            keep_copy(root, template)
        except OSError as error:
            raise HarnessError(f"--out {root}: {error.strerror}") from error
        with Writer.open(root / STORE) as writer:
            yield cls(writer)

    def has(self, name: str) -> bool:
        """Whether a conversation of this name was stored."""
        return name in self._writer

    async def add(self, rows: Sequence[Trajectory]) -> None:
        """Store rows.

        Raises:
            OSError: they could not be written.
            BrokenInvariant: one of them says what cannot be.
        """
        async with self._lock:
            await asyncio.to_thread(self._add, rows)

    def _add(self, rows: Sequence[Trajectory]) -> None:
        for row in rows:
            check(row)
        for row in rows:
            if row.identity.trajectory_id not in self._writer:  # of an add that was cut short
                self._writer.append(row)
        self._writer.commit()
