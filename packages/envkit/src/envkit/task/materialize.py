# SPDX-License-Identifier: Apache-2.0
"""A world's documents on disk, made once and shared by every trial.

`cache/worlds/<digest>/{filesystem,apps_data}` appears by one rename when it is complete, so a
reader never sees half a world. Concurrent callers, in threads or processes, wait for the one
that builds. Every time stamp is fixed: the same digest gives the same listing to every agent.
A world that something changed afterwards is noticed by its inventory and built anew.
"""

import fcntl
import json
import os
import shutil
import time
from collections.abc import Generator as Yields
from contextlib import contextmanager
from pathlib import Path

from envkit.deadline import DeadlineExceeded
from envkit.task.digest import files_under
from envkit.task.generate import generate
from envkit.task.types import World

PARTS = ("filesystem", "apps_data")
_INVENTORY = "inventory.json"
_STAMP_NS = 1_767_225_600_000_000_000
"""2026-01-01T00:00:00Z, the modification time of every file and directory of a world."""
_COPY_S = 60.0
"""For worlds without a generator: a hundred megabytes of documents copy in seconds."""
_POLL_S = 0.05


def materialize(world: World, cache: Path) -> Path:
    """The directory that holds the world's `filesystem/` and `apps_data/`; treat as read-only.

    Raises `TaskError` where the generator fails and `DeadlineExceeded` where it, or another
    caller that is building, takes too long.
    """
    home = cache / "worlds"
    home.mkdir(parents=True, exist_ok=True)
    target = home / world.digest
    if _is_intact(target):
        return target
    with only_builder(home / f"{world.digest}.lock", _limit_s(world)):
        if not _is_intact(target):
            _build(world, home, target)
    return target


def _limit_s(world: World) -> float:
    return world.generator.timeout_s if world.generator else _COPY_S


@contextmanager
def only_builder(lock: Path, build_s: float) -> Yields[None]:
    """Be the only one, in any thread or process, who builds what `lock` stands for.

    Raises `DeadlineExceeded` where others hold it for more than twice what building may take.
    """
    limit_s = 2 * build_s
    give_up = time.monotonic() + limit_s
    with lock.open("a") as handle:
        while not _try_lock(handle.fileno()):
            if time.monotonic() > give_up:
                raise DeadlineExceeded("world_wait", limit_s)
            time.sleep(_POLL_S)
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _build(world: World, home: Path, target: Path) -> None:
    with scratch(home / f".building-{world.digest}") as room:
        fresh = room / "world"
        for part in PARTS:
            (fresh / part).mkdir(parents=True)
        _fill(world, fresh)
        _stamp(fresh)
        inventory = json.dumps(_inventory(fresh), indent=1)
        (fresh / _INVENTORY).write_text(inventory, encoding="utf-8")
        if target.exists():
            target.rename(room / "damaged")
        fresh.rename(target)


@contextmanager
def scratch(path: Path) -> Yields[Path]:
    """An empty directory; what a killed builder left there is removed first."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _fill(world: World, fresh: Path) -> None:
    if world.generator:
        generate(world.generator, fresh)
        return
    for part in PARTS:
        if (world.dir / part).is_dir():
            shutil.copytree(world.dir / part, fresh / part, dirs_exist_ok=True)


def _stamp(fresh: Path) -> None:
    for part in PARTS:
        below = sorted((fresh / part).rglob("*"), reverse=True)
        for path in [*below, fresh / part]:
            path.chmod(0o755 if path.is_dir() else 0o644)
            os.utime(path, ns=(_STAMP_NS, _STAMP_NS))


def _inventory(root: Path) -> dict[str, list[int]]:
    stats = {path: path.stat() for part in PARTS for path in files_under(root / part)}
    return {
        path.relative_to(root).as_posix(): [found.st_size, found.st_mtime_ns]
        for path, found in stats.items()
    }


def _is_intact(target: Path) -> bool:
    recorded = target / _INVENTORY
    if not recorded.is_file():
        return False
    return json.loads(recorded.read_text(encoding="utf-8")) == _inventory(target)
