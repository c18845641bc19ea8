# SPDX-License-Identifier: Apache-2.0
"""Which trials work on this machine's cores now; the others wait for their turn.

Contract: at most ``places`` trials have a turn, all where it is 0. A turn is taken before work,
given back while the trial waits for something else (its model, its pauses), and ends with the
trial. It lapses after ``lease_s`` unless it is taken anew: a command that sleeps holds up nobody.
Whoever is furthest goes first, so that trials end, and free their memory, before others grow.

Without turns 550 trials that compute at one instant share two cores: every one of them is as slow
as the last, runs into limits that are not its own, and holds all the memory it will ever have.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
from typing import Final

LEASE_S: Final = 5.0
"""A tool call that computes takes a fraction of it with four trials a core."""

TURNS_A_CORE: Final = 4
"""Work of a trial is spread over its process, its gateway and its boxes, which wait in turn."""


def at_work(asked: int | None, cores: float, *, here: bool) -> int:
    """How many trials work at once: so many as were asked for, 0 for all; else a few a core.

    Of boxes that are not ``here``, on this machine, its cores bound nothing.
    """
    if asked is not None:
        return asked
    return math.ceil(TURNS_A_CORE * cores) if here else 0


class Turns:
    """Turns of one machine's trials, in the running loop."""

    def __init__(self, places: int, lease_s: float = LEASE_S) -> None:
        self._places = places
        self._lease_s = lease_s
        self._loop = asyncio.get_running_loop()
        self._taken: dict[str, asyncio.TimerHandle] = {}
        self._order = itertools.count()
        self._waiting: list[tuple[int, int, str, asyncio.Future[None]]] = []

    async def take(self, trial: str, rank: int) -> float:
        """Have a turn, or have it anew; seconds waited. A higher ``rank`` is further."""
        since = self._loop.time()
        if trial not in self._taken and self._places and len(self._taken) >= self._places:
            turn: asyncio.Future[None] = self._loop.create_future()
            heapq.heappush(self._waiting, (-rank, next(self._order), trial, turn))
            await turn
        self._hold(trial)
        return self._loop.time() - since

    def give(self, trial: str) -> None:
        """It works no more, for now or for good; who has no turn gives none."""
        lease = self._taken.pop(trial, None)
        if lease is not None:
            lease.cancel()
            self._pass_on()

    @property
    def taken(self) -> int:
        """How many work now."""
        return len(self._taken)

    def _hold(self, trial: str) -> None:
        """Begin its lease; after a wait that has been done already, and is done again."""
        if trial in self._taken:
            self._taken[trial].cancel()
        self._taken[trial] = self._loop.call_later(self._lease_s, self.give, trial)

    def _pass_on(self) -> None:
        while self._waiting and len(self._taken) < self._places:
            _, _, trial, turn = heapq.heappop(self._waiting)
            if not turn.done():  # one that is cancelled wants its turn no more
                self._hold(trial)
                turn.set_result(None)
