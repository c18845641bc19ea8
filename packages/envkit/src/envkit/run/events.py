# SPDX-License-Identifier: Apache-2.0
"""Trials that ended, a line of JSON each, for whoever watches a run from outside.

Contract: a line is written only once the trial's row is durable, by one write, and for each trial
of a run once: a process that resumes a run says what one before it stored and did not come to say.
A line that a kill has torn is no line. Lines of other runs in the file are left as they are.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import orjson

from envkit.fault import HarnessError
from envkit.trajectory.head import Head


class Events:
    """The file of a run's events; nothing where none was asked for."""

    def __init__(self, path: Path | None, run: str) -> None:
        """Begin, behind what is there.

        Raises:
            HarnessError: the file cannot be written.
        """
        self._run = run
        self._path = path
        try:
            self._said = set(_said(path, run)) if path else set[str]()
            self._fd = _open(path) if path else -1
        except OSError as error:
            raise HarnessError(
                f"--events {path}: {error.strerror}; name a file in a directory you can write"
            ) from error

    def ended(self, head: Head) -> None:
        """A trial has ended: its row is durable.

        Raises:
            HarnessError: the file cannot be written any more.
        """
        if self._fd < 0 or head.trajectory_id in self._said:
            return
        self._said.add(head.trajectory_id)
        line = {
            "event": "ended",
            "run": self._run,
            "trial": head.trajectory_id,
            "group": head.group_id,
            "sample": head.sample,
            "stop": head.stop,
            "reward": head.reward,
            "reward_valid": head.reward_valid,
            "fault": head.fault or None,
            "tokens": head.tokens,
            "sampled_tokens": head.sampled_tokens,
        }
        try:
            _write(self._fd, orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        except OSError as error:
            raise HarnessError(f"--events {self._path}: {error.strerror}; make room") from error

    def close(self) -> None:
        """Nothing more is said."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1


def _open(path: Path) -> int:
    """For appending, behind a line that a killed process may have torn."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    if path.is_file() and (size := os.fstat(fd).st_size) and os.pread(fd, 1, size - 1) != b"\n":
        os.write(fd, b"\n")
    return fd


def _write(fd: int, line: bytes) -> None:
    """The whole of it; of a line that finds too little room a part may be written."""
    if os.write(fd, line) < len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _said(path: Path, run: str) -> Iterator[str]:
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        try:
            read = orjson.loads(line)
        except ValueError:
            continue
        if isinstance(read, dict):
            told = cast("dict[str, Any]", read)
            if told.get("event") == "ended" and told.get("run") == run:
                yield str(told.get("trial"))
