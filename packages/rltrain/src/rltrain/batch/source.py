# SPDX-License-Identifier: Apache-2.0
"""Recorded trajectories as what a trainer can take of them, in groups.

Contract: every row is read once before anything is trained, so that what cannot be trained on is
refused before anything has changed. A damaged row is named and costs no other; a row of an
evaluation is left out and counted. Samples are read again when they are due: a store may be larger
than memory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from envkit.trajectory.errors import TrajectoryError
from envkit.trajectory.store import Store
from envkit.trajectory.types import Trajectory
from rltrain.batch.sample import OtherDistribution, Sample
from rltrain.refused import Refused

STORE: Final = "trajectories"
"""Where a run of envkit has its store."""
NAME_ONE: Final = "name a store, or the directory of an envkit run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What is known of a trajectory without its tokens."""

    trajectory_id: str
    group_id: str
    reward: float | None
    valid: bool
    live: bool
    tokens: int
    trained: int
    topk: bool
    """It has alternatives."""
    temperature: float
    environment_tokens: int
    """What the model was shown after its prompt."""
    oldest: int
    newest: int
    """Weight versions of its trained tokens; -1 where one is not known."""
    content: str
    """Digest of its tokens, and of which of them were sampled with which log-probs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The rows of one prompt, by their ids."""

    name: str
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What a directory of trajectories holds."""

    store: Store
    groups: tuple[Group, ...]
    """In the order in which their first rows were written."""
    damaged: tuple[str, ...] = ()
    """A line for each row or file that is not what was written."""
    evaluations: int = 0
    """Rows that are left out."""
    digest: str = ""
    """Of what there is to train on: another set of rows has another one."""
    rows: tuple[Row, ...] = field(default=())

    @property
    def version(self) -> int:
        """The newest weights that sampled here; -1 where none is known."""
        return max((row.newest for row in self.rows), default=-1)

    def samples(self, groups: Sequence[Group]) -> list[Sample]:
        """All samples of some groups.

        Raises:
            TrajectoryError: a row was there and is not any more.
        """
        ids = [row.trajectory_id for group in groups for row in group.rows]
        return [Sample.of(self.store.read(each)) for each in ids]


def opened(place: Path) -> Store:
    """The store at a path, or that of a run's directory.

    Raises:
        Refused: there is none.
        OtherSchema: another major version wrote it.
    """
    inner = place / STORE
    try:
        found = Store(inner if inner.is_dir() else place)
    except OSError as error:
        raise Refused(f"{place}: {error.strerror}; {NAME_ONE}") from error
    if not found.segments:
        raise Refused(f"{place}: holds no trajectories; {NAME_ONE}")
    return found


def recorded(
    directory: Path, tokenizer: str = "", told: Callable[[int, int], None] | None = None
) -> Recorded:
    """Read all of a store, or of the run that has it.

    ``tokenizer`` is the digest of the policy's, where it is known; ``told`` hears how many rows are
    read, and of how many.

    Raises:
        Refused: it holds nothing that can be trained on, or something that must not be.
        OtherSchema: it is of another major version.
    """
    store = opened(directory)
    rows: list[Row] = []
    damaged: list[str] = []
    evaluations = 0
    for number, each in enumerate(store.scan(), 1 - len(store.damage)):
        if told and number > 0:  # what is wrong with files comes first and is no row
            told(number, len(store))
        if isinstance(each, TrajectoryError):
            damaged.append(str(each))
        elif each.episode.evaluation:
            evaluations += 1
        else:
            rows.append(_row(each, tokenizer))
    if not rows:
        raise Refused(f"{directory}: no trajectory in it can be trained on; {_why(damaged)}")
    return Recorded(
        store=store,
        groups=tuple(_groups(rows)),
        damaged=tuple(damaged),
        evaluations=evaluations,
        digest=_digest(rows),
        rows=tuple(rows),
    )


def tokenizer_digest(policy: Path) -> str:
    """As trajectories have it; empty where the policy has no tokenizer."""
    file = policy / "tokenizer.json"
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""


def _row(row: Trajectory, tokenizer: str) -> Row:
    theirs = row.identity.tokenizer_digest
    name = row.identity.trajectory_id
    if tokenizer and theirs and theirs != tokenizer:
        raise Refused(
            f"{name}: its ids are of tokenizer {theirs[:12]}, the policy's is {tokenizer[:12]};"
            " train the policy that sampled them, or a copy with its tokenizer.json"
        )
    try:
        sample = Sample.of(row)
    except OtherDistribution as error:
        raise Refused(str(error)) from error
    versions = sample.weight_version[sample.mask]
    return Row(
        trajectory_id=name,
        group_id=sample.group_id,
        reward=sample.reward,
        valid=sample.valid,
        live=sample.live,
        tokens=len(sample),
        trained=sample.trained,
        topk=sample.topk_ids is not None,
        temperature=sample.temperature,
        environment_tokens=sample.environment_tokens,
        oldest=int(versions.min(initial=2**31 - 1)) if len(versions) else -1,
        newest=int(versions.max(initial=-1)),
        content=_content(sample),
    )


def _content(sample: Sample) -> str:
    digest = hashlib.sha256()
    for array in (sample.token_ids, sample.mask, sample.logprobs):
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _groups(rows: Sequence[Row]) -> Iterator[Group]:
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(row.group_id, []).append(row)
    for name, found in by_name.items():
        yield Group(name=name, rows=tuple(found))


def _digest(rows: Sequence[Row]) -> str:
    """Of ids, groups, rewards, flags and tokens, whatever files and order they are in."""
    names = ("trajectory_id", "group_id", "reward", "valid", "live", "temperature", "content")
    facts = sorted([getattr(row, name) for name in names] for row in rows)
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _why(damaged: Sequence[str]) -> str:
    return damaged[0] if damaged else "they are all of an evaluation"
