# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""What of a run outlives a kill: a directory a checkpoint, there whole or not at all.

``step-00000010/`` has ``state/``, each rank's shards by torch.distributed.checkpoint, and
``commit.json``: the step, the digest of the data, and size and sha256 of every shard. It is written
under another name, its bytes are on the disk before it gets its own, and only then is an older one
taken away, by renaming it first. What a step draws is a function of seed, step and rank, so the
step is all there is to keep of data position and generators.

Contract: a checkpoint whose bytes are not those that were committed is named and passed over for
the one before it; where none is whole, the run is not gone on with.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from envkit.durable import sync_directory, sync_file, write_durably
from rltrain import __version__
from rltrain.policy.ranks import all_of, me
from rltrain.policy.types import Backend
from rltrain.refused import Refused

NAME: Final = re.compile(r"step-(\d{8})")
COMMIT: Final = "commit.json"
STATE: Final = "state"
CHUNK_BYTES: Final = 2**22


class Mark(BaseModel):
    """A file as it was committed."""

    model_config = ConfigDict(frozen=True)
    bytes: int
    sha256: str


class Live(BaseModel):
    """What of a live run belongs to a checkpoint."""

    model_config = ConfigDict(frozen=True)
    lineage: int
    step: int
    offered: int
    """Prompts, so far: where the run stands in its tasks."""
    consumed: Mapping[int, tuple[str, ...]]
    """By step, from 0: the groups that it was taken on, of this lineage and those before it that it
    descends from."""
    scheduler: Mapping[str, Any]
    """Its state."""


class Commit(BaseModel):
    """What a checkpoint is of."""

    model_config = ConfigDict(frozen=True)
    step: int
    """Steps that were taken."""
    data: str
    """Digest of what is trained on."""
    ranks: int
    rltrain: str
    files: Mapping[str, Mark]
    live: Live | None = None
    """None where recorded trajectories are trained on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A whole checkpoint."""

    directory: Path
    commit: Commit


class Checkpoints:
    """Those of one run; all ranks call it together."""

    def __init__(
        self, directory: Path, *, data: str, keep: int, told: Callable[[str], None]
    ) -> None:
        self._directory = directory
        self._data = data
        self._keep = keep
        self._told = told

    def save(
        self, backend: Backend, step: int, live: Live | None = None, spared: int | None = None
    ) -> Path:
        """Leave a checkpoint after so many steps; it is there whatever happens once this returns.
        That of the step ``spared`` stays, however old it is.

        Raises:
            OSError: it cannot be written; those before it are as they were.
        """
        part = self._directory / f".{_name(step)}.part"
        if me() == 0:
            begin(part)
        all_of(None)
        backend.save(part / STATE)
        all_of(None)
        commit = Commit(
            step=step,
            data=self._data,
            ranks=backend.ranks,
            rltrain=__version__,
            files=_marks(part, settle=True),
            live=live,
        )
        if me() == 0:
            publish(part, self._directory / _name(step), commit)
            prune(self._directory, self._keep, step, spared)
        all_of(None)
        return self._directory / _name(step)

    def newest(self) -> Kept | None:
        """The last whole one; None where there are none at all.

        Raises:
            Refused: there are some, and none is whole, or they are of other data.
        """
        names = _names(self._directory)
        for name in names:
            kept = self._read(self._directory / name)
            if kept is not None:
                return kept
        if names:
            raise Refused(f"{self._directory}: no checkpoint in it is whole; begin another run")
        return None

    @property
    def steps(self) -> list[int]:
        """Of the checkpoints that are there, whole or not."""
        return [int(name.removeprefix("step-")) for name in reversed(_names(self._directory))]

    def of(self, step: int) -> Kept | None:
        """That after so many steps; None where there is no whole one."""
        directory = self._directory / _name(step)
        return self._read(directory) if directory.is_dir() else None

    def _read(self, directory: Path) -> Kept | None:
        try:
            commit = Commit.model_validate_json((directory / COMMIT).read_bytes())
        except (OSError, ValidationError) as error:
            self._told(
                f"{directory}: {COMMIT} cannot be read ({type(error).__name__}); passed over"
            )
            return None
        if commit.data != self._data:
            raise Refused(f"{directory}: is of other trajectories than those given now")
        found = _marks(directory, settle=False)
        for name, mark in commit.files.items():
            if found.get(name) != mark:
                self._told(f"{directory}: {name} is not what was written; passed over")
                return None
        return Kept(directory=directory, commit=commit)


def begin(part: Path) -> None:
    """An empty place for what is written."""
    if part.exists():
        shutil.rmtree(part)
    part.mkdir(parents=True)


def publish(part: Path, directory: Path, commit: Commit) -> None:
    """Commit: from here on it is the one to go on from."""
    write_durably(part / COMMIT, commit.model_dump_json(indent=1).encode())
    sync_directory(part)
    if directory.exists():  # a damaged one that was passed over
        _remove(directory)
    part.replace(directory)
    sync_directory(directory.parent)


def prune(directory: Path, keep: int, step: int, spared: int | None = None) -> None:
    """Take away all but the newest up to this step and that ``spared``, and what kills have left.

    What is of later steps was passed over, or the run would not be here.
    """
    names = _names(directory)
    older = [name for name in names if name <= _name(step)]
    stays = {*older[:keep], *([] if spared is None else [_name(spared)])}
    for name in names:
        if name not in stays:
            _remove(directory / name)
    for left in [*directory.glob(".*.part"), *directory.glob(".gone-*")]:
        shutil.rmtree(left)


def _remove(directory: Path) -> None:
    """At one moment it is a checkpoint, at the next it is none."""
    gone = directory.with_name(f".gone-{directory.name}")
    directory.replace(gone)
    shutil.rmtree(gone)


def _name(step: int) -> str:
    return f"step-{step:08}"


def _names(directory: Path) -> list[str]:
    """Newest first."""
    found = directory.iterdir() if directory.is_dir() else ()
    return sorted((each.name for each in found if NAME.fullmatch(each.name)), reverse=True)


def _marks(directory: Path, *, settle: bool) -> dict[str, Mark]:
    """Of every shard, each read by one rank; ``settle`` puts it on the disk first."""
    root = directory / STATE
    files = sorted(each for each in root.rglob("*") if each.is_file())
    mine: dict[str, Any] = {}
    ranks = len(all_of(None))
    for file in files[me() :: ranks]:
        mine[str(file.relative_to(directory))] = _mark(file, settle)
    if settle:
        for folder in [root, *(each for each in root.rglob("*") if each.is_dir())]:
            sync_directory(folder)
    return {name: mark for part in all_of(mine) for name, mark in part.items()}


def _mark(file: Path, settle: bool) -> Mark:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        if settle:
            sync_file(opened.fileno())
        while chunk := opened.read(CHUNK_BYTES):
            digest.update(chunk)
        return Mark(bytes=os.fstat(opened.fileno()).st_size, sha256=digest.hexdigest())
