# SPDX-License-Identifier: Apache-2.0
"""At most so many starts a second, with jitter: boxes that start at one instant collide."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Final

STARTS_PER_S: Final = 25.0
"""Boxes that start at one instant stand in each other's way: 25 a second starts 64 in 3 s."""


class Pace:
    """Gives starts their turn, in the order they were asked for; the first comes at once."""

    def __init__(self, per_s: float, dice: random.Random | None = None) -> None:
        self._gap_s = 1 / per_s
        self._dice = dice or random.Random()
        self._next = 0.0

    async def wait(self) -> None:
        """Wait for the next turn."""
        now = time.monotonic()
        turn = max(self._next, now)
        self._next = turn + self._gap_s * self._dice.uniform(0.5, 1.5)
        await asyncio.sleep(turn - now)
