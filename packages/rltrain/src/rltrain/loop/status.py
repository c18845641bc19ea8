# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Where a run stands, read from its directory alone: the run may be going on, or be dead.

Contract: nothing is changed, and nothing of a run need be there but its manifest.
"""

from __future__ import annotations

import fcntl
import time
from dataclasses import dataclass
from pathlib import Path

from rltrain.config.read import read
from rltrain.loop.checkpoint import COMMIT, Commit
from rltrain.loop.directory import CHECKPOINTS, CONFIG, LOCK, Manifest, manifest_of
from rltrain.loop.evaluation import Evaluated, evaluations_of
from rltrain.loop.lineage import Lineages
from rltrain.loop.settings import Settings
from rltrain.track.metrics import METRICS, Step, read_metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Of a run."""

    root: Path
    manifest: Manifest
    settings: Settings
    running: bool
    """A process holds it."""
    last: Step | None
    """The last step that was taken; None before the first."""
    seconds_ago: float | None
    """Since then."""
    steps_per_h: float | None
    """Over the last steps; None before there are two."""
    checkpoints: tuple[Commit, ...]
    """Oldest first; shards are not read."""
    lineages: int
    evaluations: tuple[Evaluated, ...]


RECENT = 10
"""Steps that a rate is taken over."""


def status_of(root: Path) -> Status:
    """All of it.

    Raises:
        Refused: it is no run, or a file of it is damaged.
    """
    manifest = manifest_of(root)
    steps = read_metrics(root / METRICS).steps if (root / METRICS).exists() else ()
    times = [step.numbers.get("time") for step in steps[-RECENT:]]
    known = [each for each in times if each is not None]
    rate = 3600 * (len(known) - 1) / (known[-1] - known[0]) if len(known) > 1 else None
    return Status(
        root=root,
        manifest=manifest,
        settings=read(Settings, root / CONFIG),
        running=_held(root),
        last=steps[-1] if steps else None,
        seconds_ago=max(0.0, time.time() - known[-1]) if known else None,
        steps_per_h=rate,
        checkpoints=tuple(_commits(root)),
        lineages=len(Lineages.read(root).lines),
        evaluations=evaluations_of(root),
    )


def _commits(root: Path) -> list[Commit]:
    files = sorted((root / CHECKPOINTS).glob(f"step-*/{COMMIT}"))
    return [Commit.model_validate_json(file.read_bytes()) for file in files]


def _held(root: Path) -> bool:
    """Whether a process has locked it."""
    if not (root / LOCK).exists():
        return False
    with (root / LOCK).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False
