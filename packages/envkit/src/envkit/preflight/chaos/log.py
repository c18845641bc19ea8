# SPDX-License-Identifier: Apache-2.0
"""What the injector did: one JSON line a strike, in ``chaos.jsonl``.

Contract: written by what strikes, at the moment it struck; read by `score` alone. A line is one
write to a file opened for appending, so that the processes of many trials share it.
"""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import orjson

from envkit.preflight.chaos.choose import Strike

LOG_NAME: Final = "chaos.jsonl"

_now: Final = time.time
"""Bound before a strike makes the clock of this process wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A strike, and whether it took effect."""

    trial: str
    attempt: int
    kind: str
    phase: str
    at: float
    """Unix time in seconds."""
    took: bool
    effect: str
    """What was seen of it: ``process 4711 is gone``."""


def write(path: Path, strike: Strike, effect: str, *, took: bool = True) -> None:
    """Add one line."""
    done = Done(
        trial=strike.trial,
        attempt=strike.attempt,
        kind=strike.kind,
        phase=strike.phase,
        at=_now(),
        took=took,
        effect=effect,
    )
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(fd, orjson.dumps(asdict(done)) + b"\n")
    finally:
        os.close(fd)


def read(path: Path) -> list[Done]:
    """Every line; none where nothing was struck.

    Raises:
        ValueError, TypeError: a line is none of `write`.
    """
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [Done(**orjson.loads(line)) for line in lines]
