# SPDX-License-Identifier: Apache-2.0
"""Another program's answer, within a deadline.

Contract: comes back when its time is up whatever the program does, its children too: they are one
session that is killed as a whole, and they write to a file, because a pipe is read until the last
of its holders ends. A program that not even SIGKILL ends is left behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

ANSWER_S: Final = 5.0
"""A client that reaches its daemon answers in tens of milliseconds; five seconds is none."""
_GONE_S: Final = 1.0
_MOST: Final = 64 * 1024
"""Bytes of an answer that are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a program said."""

    status: int | None
    """Its exit status; None where it did not end in time or could not be started."""
    text: str
    """Standard output and error together, or why there is none."""

    @property
    def ok(self) -> bool:
        return self.status == 0

    @property
    def line(self) -> str:
        """Its first line that says something."""
        return next(iter(self._lines()), "no word")

    @property
    def last(self) -> str:
        """Its last line that says something: scripts around a program complain first."""
        return next(iter(self._lines()[::-1]), "no word")

    def _lines(self) -> list[str]:
        return [line.strip() for line in self.text.splitlines() if line.strip()]


def ask(command: Sequence[str], within_s: float = ANSWER_S) -> Answer:
    """Run a program that reads nothing and is expected to end soon."""
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            return Answer(status=None, text=f"{command[0]} cannot be started: {error.strerror}")
        try:
            status = process.wait(within_s)
        except subprocess.TimeoutExpired:
            _kill(process)
            return Answer(status=None, text=f"no answer within {within_s:g} s")
        said.seek(0)
        return Answer(status=status, text=said.read(_MOST).decode(errors="replace"))


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GONE_S)
