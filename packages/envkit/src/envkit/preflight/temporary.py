# SPDX-License-Identifier: Apache-2.0
"""Temporary files of everything that a run starts: what is left of them leaked."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from envkit.preflight.types import Leftover

TEMPORARY: Final = ".tmp"
"""Under the run's directory. No trial's name begins with a dot."""


@dataclass(slots=True)
class Temporary:
    """The directory of a run's temporary files."""

    path: Path
    left: tuple[Leftover, ...] = ()
    """What was there when the run ended, and was removed."""

    @asynccontextmanager
    async def entered(self) -> AsyncGenerator[Path]:
        """It is there before anything is started, and is left when all has ended."""
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            yield self.path
        finally:
            here = sorted(self.path.iterdir()) if self.path.is_dir() else []
            self.left = tuple(Leftover(kind="file", what=str(path)) for path in here)
            shutil.rmtree(self.path, ignore_errors=True)
