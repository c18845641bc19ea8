# SPDX-License-Identifier: Apache-2.0
"""Where the files of a run go.

Contract: a report directory is ours to overwrite only when it is new, empty or carries our mark;
without one the run has a directory in the user's cache, kept only when there is something to look
at, and only the newest of these. One process at a time works in it: the kernel holds the lock, so
that a killed one holds nothing. Report files appear whole or not at all.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from envkit.fault import HarnessError
from envkit.preflight.asked import RUN_NAME
from envkit.preflight.journal import JOURNAL_NAME
from envkit.preflight.outputs import write_whole
from envkit.preflight.past import CUT_OFF
from envkit.preflight.quarantine import NAME as QUARANTINE_NAME
from envkit.preflight.quarantine import to_bytes
from envkit.preflight.report_html import to_html
from envkit.preflight.report_json import to_json
from envkit.preflight.types import Report, Verdict

MARK: Final = ".envkit-preflight"
"""Says that a directory is a run's, and is locked by the process that works in it, whose pid it
holds; it holds nothing once the run is over."""

KEPT_RUNS: Final = 10
"""Of those that nobody named a directory for: enough to compare, too few to fill a disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The directory of one run."""

    root: Path
    asked_for: bool
    """The user named it, so it is kept and gets the report files."""
    lock: int
    """Descriptor of the mark, held until `release`."""

    @property
    def trials(self) -> Path:
        return self.root / "trials"

    @property
    def page(self) -> Path:
        return self.root / "report.html"


def open_place(report_dir: Path | None, run_token: str) -> Place:
    """Makes the directory, and empties it of an earlier run of ours.

    Raises:
        HarnessError: it holds files that are not ours, or cannot be written.
    """
    root = _root(report_dir, run_token)
    with _writable(root):
        place = Place(root=root, asked_for=report_dir is not None, lock=_claim(root))
        _empty(place)
    return place


def reopen_place(root: Path) -> Place:
    """The directory of an earlier run, with all that is in it.

    Raises:
        HarnessError: it is no run's, another process works in it, or it cannot be written.
    """
    root = root.resolve()
    if not (root / MARK).exists():
        raise HarnessError(f"{root}: holds no run; name the directory that a run wrote")
    with _writable(root):
        lock = _lock(root)
    return Place(root=root, asked_for=root.parent != _runs(), lock=lock)


def release(place: Place) -> None:
    """Let other processes work in it."""
    os.close(place.lock)


def keep(place: Place, report: Report) -> None:
    """Writes the report files where they were asked for; drops a run nobody has to look at.

    The place stays locked, so that what is written after the report has it to itself.
    """
    if place.asked_for:
        json = orjson.dumps(to_json(report), option=orjson.OPT_INDENT_2)
        write_whole(place.root / "report.json", json + b"\n")
        write_whole(place.page, to_html(report).encode())
        write_whole(place.root / QUARANTINE_NAME, to_bytes(report))
    elif report.verdict in (Verdict.PASS, Verdict.COULD_NOT_RUN):
        shutil.rmtree(place.root, ignore_errors=True)
    if place.root.exists():
        (place.root / MARK).write_text("")
    if not place.asked_for:
        _prune(place.root.parent, place.root / MARK)


def _prune(runs: Path, own: Path) -> None:
    """Keep the newest runs, our own among them; one that still runs is nobody's to remove."""
    over = [mark for mark in runs.glob(f"*/{MARK}") if mark == own or not _lives(mark)]
    over.sort(key=lambda mark: mark.stat().st_mtime_ns, reverse=True)
    for mark in over[KEPT_RUNS:]:
        shutil.rmtree(mark.parent, ignore_errors=True)


def _lives(mark: Path) -> bool:
    """Whether a process holds the mark."""
    try:
        fd = os.open(mark, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def _root(report_dir: Path | None, run_token: str) -> Path:
    if report_dir is not None:
        return report_dir.resolve()
    return _runs() / run_token


def _runs() -> Path:
    """Where the runs are that nobody named a directory for."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "envkit", "preflight").resolve()


@contextlib.contextmanager
def _writable(root: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise HarnessError(
            f"{error.filename or root}: {error.strerror}; "
            "name a directory you can write with --report DIR"
        ) from error


def _claim(root: Path) -> int:
    """Make the directory ours, and lock it."""
    root.mkdir(parents=True, exist_ok=True)
    if any(root.iterdir()) and not (root / MARK).exists():
        raise HarnessError(f"{root}: holds files of something else; name a new directory")
    return _lock(root)


def _lock(root: Path) -> int:
    """A descriptor that holds the mark; the kernel lets go of it when this process ends."""
    fd = os.open(root / MARK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(fd, 0)
        os.pwrite(fd, str(os.getpid()).encode(), 0)
    except BlockingIOError as error:
        pid = os.pread(fd, 20, 0).decode(errors="replace")
        os.close(fd)
        raise HarnessError(
            f"{root}: process {pid} works on a run in it; wait for its end or name another"
        ) from error
    except OSError:
        os.close(fd)
        raise
    return fd


def _empty(place: Place) -> None:
    """Nothing of an earlier run may pass for this one's."""
    for name in (RUN_NAME, JOURNAL_NAME, "report.json", place.page.name, QUARANTINE_NAME):
        (place.root / name).unlink(missing_ok=True)
    for folder in (place.trials, place.root / CUT_OFF):
        if folder.exists():
            shutil.rmtree(folder)
    place.trials.mkdir()
