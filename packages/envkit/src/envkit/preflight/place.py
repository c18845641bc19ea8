# SPDX-License-Identifier: Apache-2.0
"""Where the files of a run go.

Contract: a report directory is ours to overwrite only when it is new, empty or carries our mark;
without one the run has a directory in the user's cache, kept only when there is something to look
at. Report files appear whole or not at all.
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
    mark.touch()
    if place.trials.exists():
        shutil.rmtree(place.trials)
    place.trials.mkdir()


def _write(path: Path, data: bytes) -> None:
    """Under another name first: a reader never sees half a report."""
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(data)
    part.replace(path)
