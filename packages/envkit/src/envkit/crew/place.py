# SPDX-License-Identifier: Apache-2.0
"""The directory of a crew: whose it is, and what an earlier crew left in it.

Contract: one crew at a time works in a root; the kernel holds the lock, so that a killed one holds
nothing. Whatever carries the token of an earlier crew is gone before the next one starts anything.
A trial that has no row was under way, and of it nothing is left but its journal; of those that have
one, the directories that are to be kept are.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Container, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson

from envkit.agent.journal import JOURNAL_NAME
from envkit.crew.types import CUT_OFF, SCHEMA, TRIALS, Keep
from envkit.durable import write_durably
from envkit.fault import HarnessError
from envkit.preflight.begin import bury
from envkit.preflight.temporary import TEMPORARY
from envkit.trajectory.store import Store

NAME: Final = "crew.json"
LOCK: Final = ".crew"
AGENT: Final = "agent"
"""Directory of a trial's agent, in the trial's own."""
KEPT_CREWS: Final = 2
"""Whose journals are kept: one that was killed as it opened had no time to go on with them."""
TOKEN: Final = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The root of a crew that is locked."""

    root: Path
    run_token: str

    @property
    def trials(self) -> Path:
        return self.root / TRIALS


@contextlib.contextmanager
def claimed(root: Path, run_token: str) -> Generator[Place]:
    """The root, once nothing of an earlier crew lives any more.

    Raises:
        HarnessError: another crew works in it, something of an earlier one cannot be ended, or it
            cannot be written.
    """
    token = run_token or secrets.token_hex(8)
    if not TOKEN.fullmatch(token):
        raise HarnessError(f"run_token {token!r}: write sixteen hex digits, or leave it out")
    try:
        (root / TRIALS).mkdir(parents=True, exist_ok=True)
        lock = _lock(root)
    except OSError as error:
        raise HarnessError(
            f"{error.filename or root}: {error.strerror}; name a root that this user can write"
        ) from error
    try:
        if earlier := _token_of(root / NAME):
            bury(earlier)
        asked = {"schema": SCHEMA, "run_token": token, "pid": os.getpid()}
        write_durably(root / NAME, orjson.dumps(asked))
        yield Place(root=root, run_token=token)
    finally:
        os.close(lock)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What earlier crews had under way."""

    cut_off: tuple[str, ...] = ()
    """Trials of the crew before."""
    resumable: Mapping[str, str] = field(default_factory=dict[str, str])
    """Directories of journals, by trial."""


def sweep(place: Place, store: Store, keep: Keep) -> Swept:
    """Remove what an earlier crew left of its trials, but for the journals of the last two."""
    shutil.rmtree(place.root / TEMPORARY, ignore_errors=True)
    heads = {head.trajectory_id: head for head in store.heads}
    left = sorted(place.trials.iterdir())
    cut_off = [each for each in left if each.name not in heads]
    _keep_journals(cut_off, place.root / CUT_OFF)
    for directory in left:
        head = heads.get(directory.name)
        if head is None or not keeps(keep, faulted=not head.reward_valid):
            remove(directory)
    names = tuple(each.name for each in cut_off)
    return Swept(cut_off=names, resumable=dict(_resumable(place.root / CUT_OFF, heads)))


def _keep_journals(cut_off: Sequence[Path], kept: Path) -> None:
    """Those of one crew lie beside each other, under a number that grows from crew to crew."""
    journals = [each / AGENT / JOURNAL_NAME for each in cut_off]
    there = [each for each in journals if each.is_file()]
    before = _crews(kept)
    place = kept / f"{int(before[-1].name) + 1 if before else 1:08d}"
    for journal in there:
        agent = place / journal.parents[1].name / AGENT
        agent.mkdir(parents=True, exist_ok=True)
        journal.replace(agent / JOURNAL_NAME)
    if there:
        for old in before[: 1 - KEPT_CREWS]:
            remove(old)


def _resumable(kept: Path, ended: Container[str]) -> Iterator[tuple[str, str]]:
    """A trial that was cut off twice counts as it was the last time."""
    for crew in _crews(kept):
        for trial in sorted(crew.iterdir()):
            if trial.name not in ended and (trial / AGENT / JOURNAL_NAME).is_file():
                yield trial.name, str(trial)


def _crews(kept: Path) -> list[Path]:
    return sorted(kept.iterdir()) if kept.is_dir() else []


def remove(directory: Path) -> None:
    """Of a trial; what cannot be removed is no trial's fault."""
    shutil.rmtree(directory, ignore_errors=True)


def keeps(keep: Keep, *, faulted: bool) -> bool:
    """Whether the directory of such a trial stays."""
    return keep == "all" or (keep == "faulted" and faulted)


def _lock(root: Path) -> int:
    fd = os.open(root / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        pid = os.pread(fd, 20, 0).decode(errors="replace").strip()
        os.close(fd)
        raise HarnessError(
            f"{root}: the crew of process {pid or 'unknown'} works in it; end that one, or name "
            "another root"
        ) from error
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    return fd


def _token_of(path: Path) -> str:
    """Of the crew before; a file that says nothing was never written whole."""
    try:
        token = str(orjson.loads(path.read_bytes())["run_token"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return ""
    return token if TOKEN.fullmatch(token) else ""
