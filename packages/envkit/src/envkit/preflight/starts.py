# SPDX-License-Identifier: Apache-2.0
"""How many trials are on their way up at once.

Contract: an attempt takes its turn before its process is forked and gives it back when its gateway
has answered, or when it is over; giving back twice is harmless. A rate alone does not bound this:
where each start takes longer than its turn, starts pile up until every one of them runs into its
deadline. Above a few a core, more starts at once make none of them sooner.
"""

from __future__ import annotations

import asyncio
import math
from typing import Final

from envkit.pace import Pace

STARTS_A_CORE: Final = 4
"""A start is 0.2 to 0.4 CPU seconds, with waits in between that another one can use."""


def room(concurrency: int, cores: float, *, here: bool) -> int:
    """How many may be under way; of boxes that are not ``here``, as many as there are trials.

    A provider's cold start takes a minute and none of this machine's cores.
    """
    return math.ceil(STARTS_A_CORE * cores) if here else concurrency


class Starts:
    """Gives attempts their turn to start, in the order they ask for it."""

    def __init__(self, at_once: int, pace: Pace) -> None:
        self._room = asyncio.Semaphore(max(1, at_once))
        self._pace = pace
        self._under_way: set[str] = set()

    async def begin(self, trial: str) -> None:
        """Wait for room, then for the rate."""
        await self._room.acquire()
        self._under_way.add(trial)
        try:
            await self._pace.wait()
        except BaseException:
            self.done(trial)
            raise

    def done(self, trial: str) -> None:
        """It is up, or will never be."""
        if trial in self._under_way:
            self._under_way.remove(trial)
            self._room.release()

    @property
    def under_way(self) -> int:
        """Attempts that have begun and are not up."""
        return len(self._under_way)
