# SPDX-License-Identifier: Apache-2.0
"""What a path holds: a run's store, a segment of one, trials, or one trial.

Contract: nothing is written and nothing is locked, so a run that is under way can be looked at.
What is damaged is named and costs no other row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from envkit.fault import HarnessError
from envkit.trajectory.episode_file import EPISODE_NAME, read_episode
from envkit.trajectory.errors import Damaged, TrajectoryError
from envkit.trajectory.types import Outcome, Trajectory
from envkit.trial.joined import join
from envkit.trial.record import RECORD_NAME, read_record

STORE: Final = "trajectories"
TRIALS: Final = "trials"
_ATTEMPT: Final = re.compile(r"(.+)\.attempt(\d+)")

type Row = Trajectory | TrajectoryError


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where trajectories are read from."""

    path: Path
    """The directory or file itself."""
    kind: str
    """``store``, ``segment``, ``trials`` or ``trial``."""

    @property
    def places(self) -> tuple[Path, ...]:
        """Where copies of tokenizers may lie: here and above, the nearest first."""
        return (self.path, *self.path.absolute().parents)[:5]


def source_of(path: Path) -> Source | None:
    """What trajectories there are; None where there are none."""
    if path.is_file():
        if path.suffix == ".arrow":
            return Source(path=path, kind="segment")
        return Source(path=path.parent, kind="trial") if path.name == EPISODE_NAME else None
    for place in (path / STORE, path):
        if any(place.glob("segment-*.arrow")):
            return Source(path=place, kind="store")
    if (path / "agent" / EPISODE_NAME).exists():
        return Source(path=path, kind="trial")
    for place in (path / TRIALS, path):
        if any(place.glob(f"*/agent/{EPISODE_NAME}")):
            return Source(path=place, kind="trials")
    return None


def rows(source: Source) -> Iterator[Row]:
    """Every trajectory, or what is wrong with it.

    Raises:
        HarnessError: the directory cannot be read, or another version wrote it.
    """
    try:
        yield from _READ[source.kind](source.path)
    except OSError as error:
        raise HarnessError(f"{error.filename or source.path}: {error.strerror}") from error


def one(source: Source, name: str) -> Trajectory:
    """The trajectory of this id, or the only one whose id has it in it.

    Raises:
        HarnessError: there is none, there are several, or it is damaged.
    """
    if source.kind == "store":
        return _stored(source.path, name)
    good = (each for each in rows(source) if isinstance(each, Trajectory))
    found = {each.identity.trajectory_id: each for each in good}
    return found[_named(name, tuple(found), source.path)]


def _stored(directory: Path, name: str) -> Trajectory:
    from envkit.trajectory.store import Store

    store = Store(directory)
    return store.read(_named(name, store.ids, directory))


def _named(name: str, ids: tuple[str, ...], where: Path) -> str:
    if name in ids:
        return name
    near = [each for each in ids if name in each]
    if len(near) == 1:
        return near[0]
    if near:
        some = ", ".join(near[:4])
        raise HarnessError(f"--id {name}: stands for {len(near)} of {where}: {some}, …; say more")
    some = ", ".join(ids[:4])
    raise HarnessError(f"--id {name}: no such trajectory in {where}; there are {some}, …")


def _store(directory: Path) -> Iterator[Row]:
    from envkit.trajectory.store import Store

    yield from Store(directory).scan()


def _segment(file: Path) -> Iterator[Row]:
    from envkit.trajectory.store import scan_segment

    yield from scan_segment(file)


def _trials(directory: Path) -> Iterator[Row]:
    last = dict[str, tuple[int, Path]]()
    for file in sorted(directory.glob(f"*/agent/{EPISODE_NAME}")):
        trial = file.parents[1]
        named = _ATTEMPT.fullmatch(trial.name)
        name, number = (named[1], int(named[2])) if named else (trial.name, 1)
        last[name] = max(last.get(name, (0, trial)), (number, trial))
    for _, trial in last.values():
        yield from _trial(trial)


def _trial(directory: Path) -> Iterator[Row]:
    """What its agent left, with its record where it ended."""
    agent = directory if (directory / EPISODE_NAME).exists() else directory / "agent"
    try:
        identity, episode = read_episode(agent / EPISODE_NAME)
    except TrajectoryError as bad:
        yield bad
        return
    record = agent.parent / RECORD_NAME
    try:
        yield join(read_record(record), identity, episode)
    except FileNotFoundError:
        open_end = Outcome(reward=None, reward_valid=False, loss_live=False)
        yield Trajectory(identity=identity, episode=episode, outcome=open_end)
    except ValueError as error:
        yield Damaged(str(record), identity.trajectory_id, f"no record can be read: {error}")


_READ: Final = {"store": _store, "segment": _segment, "trials": _trials, "trial": _trial}
