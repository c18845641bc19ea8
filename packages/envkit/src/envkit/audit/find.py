# SPDX-License-Identifier: Apache-2.0
"""Walk an audited directory and say of every file what it is: a run, or ignored.

Contract: nothing is skipped silently. Each regular file under the root is read as part of a
candidate or counted as ignored; what cannot be entered or would leave the root is named. Links are
never followed. A Harbor trial directory is one candidate; elsewhere each JSON file that is not a
known sidecar is one, and so is a directory of trajectory segments.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from envkit.audit.types import Ignored, Unreadable

MAX_DEPTH: Final = 40

SIDECARS: Final = frozenset(
    {
        "agent_config.json",
        "config.json",
        "grades.json",
        "lock.json",
        "result.json",
        "results.json",
        "reward.json",
        "scoring_config.json",
        "verifiers.json",
    }
)
"""Read beside a run when they have a meaning, never as one."""

_TRIAL_FILES: Final = frozenset({"config.json", "result.json", "envkit.json"})
_TRIAL_PARTS: Final = frozenset(
    {"agent", "artifacts", "envkit.json", "exception.txt", "steps", "trial.log", "verifier"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialDir:
    """A directory one Harbor trial wrote."""

    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFile:
    """A JSON file that may be a run."""

    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreDir:
    """A directory of trajectory segments, or one segment."""

    path: Path


type Entry = TrialDir | TraceFile | StoreDir | Ignored | Unreadable


def find(root: Path) -> Iterator[Entry]:
    """Every entry under ``root`` (a directory, or one file) in a stable order."""
    if root.is_file():
        yield StoreDir(path=root) if is_segment(root.name) else TraceFile(path=root)
    else:
        yield from _directory(root, root, MAX_DEPTH)


def _directory(path: Path, root: Path, depth: int) -> Iterator[Entry]:
    if depth == 0:
        yield Unreadable(file=relative(path, root), reason="directories nested too deeply")
        return
    try:
        entries = sorted(os.scandir(path), key=lambda entry: entry.name)
    except OSError as error:
        yield Unreadable(file=relative(path, root), reason=f"cannot be listed: {error.strerror}")
        return
    if _is_trial({entry.name for entry in entries}):
        yield TrialDir(path=path)
        return
    stored = [entry for entry in entries if is_segment(entry.name) and not entry.is_symlink()]
    if stored:
        yield StoreDir(path=path)
    for entry in entries:
        if entry not in stored:
            yield from _entry(entry, root, depth)


def _is_trial(names: set[str]) -> bool:
    return bool(names & _TRIAL_FILES) and bool(names & _TRIAL_PARTS)


def _entry(entry: os.DirEntry[str], root: Path, depth: int) -> Iterator[Entry]:
    path = Path(entry.path)
    if entry.is_symlink():
        yield _link(path, root)
    elif entry.is_dir():
        yield from _directory(path, root, depth - 1)
    elif is_candidate(entry.name):
        yield TraceFile(path=path)
    else:
        yield Ignored()


def _link(path: Path, root: Path) -> Entry:
    """A link inside the root names what is found anyway; one that leaves it is reported."""
    try:
        inside = path.resolve(strict=True).is_relative_to(root)
    except (OSError, RuntimeError):
        return Unreadable(file=relative(path, root), reason="a symbolic link to nothing")
    if inside:
        return Ignored()
    reason = "a symbolic link out of the audited directory: not followed"
    return Unreadable(file=relative(path, root), reason=reason)


def is_segment(name: str) -> bool:
    """Whether a file of this name holds trajectories."""
    return name.startswith("segment-") and name.endswith(".arrow")


def is_candidate(name: str) -> bool:
    """Whether a file of this name may be a run."""
    return name.endswith(".json") and name not in SIDECARS


def count_files(path: Path) -> int:
    """Files under a trial directory, links included, at any depth."""
    return sum(len(files) for _, _, files in os.walk(path))


def relative(path: Path, root: Path) -> str:
    """``path`` as citations name it: under the root, with forward slashes."""
    return path.name if path == root else path.relative_to(root).as_posix()
