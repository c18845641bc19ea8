# SPDX-License-Identifier: Apache-2.0
"""What trials wrote, for their report: the last lines of logs, the beginning of a file.

A trial directory holds files that came out of a box: they are read without following links, only
below the trial directory, only regular files, and only their last bytes.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from envkit.preflight.text import one_line

TAIL_BYTES: Final = 8192
TAIL_LINES: Final = 12
WANTED: Final = (
    "exception.txt",
    "trial.log",
    "verifier/test-stdout.txt",
    "verifier/test-stderr.txt",
    "agent/*.log",
    "agent/*.txt",
)
"""Where Harbor and our agents write, the most telling first."""


def log_tail(trial_dir: Path) -> tuple[str, ...]:
    """Up to twelve lines of each log, under its name; empty where there is none."""
    return tuple(
        line
        for path in _logs(trial_dir)
        if (lines := _last_lines(path))
        for line in (f"--- {path.relative_to(trial_dir)}", *lines)
    )


def _logs(trial_dir: Path) -> Iterator[Path]:
    root = trial_dir.resolve()
    for pattern in WANTED:
        for path in sorted(trial_dir.glob(pattern)):
            if path.parent.resolve().is_relative_to(root):
                yield path


def regular_file(trial_dir: Path, name: str, most: int) -> bytes:
    """The first bytes of a file below a trial's directory; nothing where there is none."""
    path = trial_dir / name
    try:
        if not path.parent.resolve().is_relative_to(trial_dir.resolve()):
            return b""
        return _bytes(path, 0, most)
    except OSError:
        return b""


def _last_lines(path: Path) -> list[str]:
    try:
        text = _last_bytes(path).decode("utf-8", "replace")
    except OSError as error:
        return [f"cannot be read: {error.strerror}"]
    return [one_line(line) for line in text.splitlines() if line.strip()][-TAIL_LINES:]


def _last_bytes(path: Path) -> bytes:
    return _bytes(path, -TAIL_BYTES, TAIL_BYTES)


def _bytes(path: Path, begin: int, most: int) -> bytes:
    """Of a regular file, from a place counted from its end where it is negative."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        info = os.fstat(handle)
        if not stat.S_ISREG(info.st_mode):
            return b""
        file.seek(begin if begin >= 0 else max(0, info.st_size + begin))
        return file.read(most)
