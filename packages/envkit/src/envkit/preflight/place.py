# SPDX-License-Identifier: Apache-2.0
"""Where the files of a run go.

Contract: a report directory is ours to overwrite only when it is new, empty or carries our mark;
without one the run has a directory in the user's cache, kept only when there is something to look
at, and only the newest of these. Report files appear whole or not at all.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from envkit.fault import HarnessError
from envkit.preflight.report_html import to_html
from envkit.preflight.report_json import to_json
from envkit.preflight.types import Report, Verdict

MARK: Final = ".envkit-preflight"
"""Says that a directory is a run's: holds the pid of its process, and nothing once it is over."""

KEPT_RUNS: Final = 10
"""Of those that nobody named a directory for: enough to compare, too few to fill a disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The directory of one run."""

    root: Path
    asked_for: bool
    """The user named it, so it is kept and gets the report files."""

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
    place = Place(root=_root(report_dir, run_token), asked_for=report_dir is not None)
    try:
        _claim(place)
    except OSError as error:
        raise HarnessError(
            f"{error.filename}: {error.strerror}; name a directory you can write with --report DIR"
        ) from error
    return place


def keep(place: Place, report: Report) -> None:
    """Writes the report files where they were asked for; drops a run nobody has to look at."""
    if place.asked_for:
        json = orjson.dumps(to_json(report), option=orjson.OPT_INDENT_2)
        _write(place.root / "report.json", json + b"\n")
        _write(place.page, to_html(report).encode())
    elif report.verdict in (Verdict.PASS, Verdict.COULD_NOT_RUN):
        shutil.rmtree(place.root, ignore_errors=True)
    if place.root.exists():
        (place.root / MARK).write_text("")
    if not place.asked_for:
        _prune(place.root.parent)


def _prune(runs: Path) -> None:
    """Keep the newest runs; one that still runs is nobody's to remove."""
    over = [mark for mark in runs.glob(f"*/{MARK}") if not _lives(mark)]
    over.sort(key=lambda mark: mark.stat().st_mtime_ns, reverse=True)
    for mark in over[KEPT_RUNS:]:
        shutil.rmtree(mark.parent, ignore_errors=True)


def _lives(mark: Path) -> bool:
    try:
        os.kill(int(mark.read_text()), 0)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True


def _root(report_dir: Path | None, run_token: str) -> Path:
    if report_dir is not None:
        return report_dir.resolve()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "envkit", "preflight", run_token).resolve()


def _claim(place: Place) -> None:
    place.root.mkdir(parents=True, exist_ok=True)
    mark = place.root / MARK
    if any(place.root.iterdir()) and not mark.exists():
        raise HarnessError(f"{place.root}: holds files of something else; name a new directory")
    mark.write_text(str(os.getpid()))
    if place.trials.exists():
        shutil.rmtree(place.trials)
    place.trials.mkdir()


def _write(path: Path, data: bytes) -> None:
    """Under another name first: a reader never sees half a report."""
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(data)
    part.replace(path)
