# SPDX-License-Identifier: Apache-2.0
"""Where a step's time goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager


class Seconds:
    """Adds up what parts of a step take."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._began = clock()
        self._parts: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Generator[None]:
        """What runs inside is of this part."""
        began = self._clock()
        try:
            yield
        finally:
            self._parts[name] = self._parts.get(name, 0.0) + self._clock() - began

    def told(self) -> dict[str, float]:
        """Seconds by part since this was last asked, ``other`` and ``total`` among them."""
        now = self._clock()
        total = now - self._began
        parts = {**self._parts, "other": total - sum(self._parts.values()), "total": total}
        self._began, self._parts = now, {}
        return {f"seconds/{name}": value for name, value in parts.items()}
