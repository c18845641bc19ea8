# SPDX-License-Identifier: Apache-2.0
"""Whether a trial can go on where it was killed.

Contract: what is known before anything is started is decided here; what shows only as calls are
carried out again ends the attempt as `ReplayDiffers`, and the trial starts over.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from envkit.agent.journal import JOURNAL_NAME, Past, read_journal
from envkit.crew.place import AGENT
from envkit.trajectory.errors import Damaged


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumption:
    """Of one order."""

    tokens: int = 0
    """That the killed attempt had come to."""
    unable: str = ""
    """Why it starts over; empty where it goes on."""


def resumption(directory: str) -> Resumption:
    """Of an order that names this directory."""
    try:
        past = read_journal(Path(directory, AGENT, JOURNAL_NAME))
    except OSError as error:
        return Resumption(unable=f"{error.filename}: {error.strerror}")
    except Damaged as damaged:
        return Resumption(unable=str(damaged))
    return _of(past)


def _of(past: Past) -> Resumption:
    if not past.turns:
        return Resumption(unable="nothing was sampled before the kill")
    return Resumption(tokens=past.tokens, unable=past.unknown)
