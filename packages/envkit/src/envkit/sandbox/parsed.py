# SPDX-License-Identifier: Apache-2.0
"""The documents of a world laid out once for all its trials, beside the world in the cache.

`cache/parsed/<version>/<world>/` appears by one rename when it is complete. The version covers the
code that lays out and its library, so that another one never answers. It is a help, never a
need: where it cannot be made, each gateway parses what it is asked for. What is damaged is made
anew; a gateway that meets damage all the same does without (see `envkit.servers.pdf.shelf`).
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import envkit
from envkit.deadline import DeadlineExceeded
from envkit.task.materialize import only_builder, scratch

SHELVE_S: Final = 180.0
"""Of one world: its program begins no document after 90 s and gives each 45 s."""

_PROGRAM: Final = "envkit.servers.pdf.shelving"
_INVENTORY: Final = "inventory.json"
_log = logging.getLogger("envkit.sandbox")


def ensure_parsed(world: Path, cache: Path) -> Path | None:
    """Where the parsed documents of a materialised world lie; None when they could not be made."""
    home = cache / "parsed" / _version()
    target = home / world.name
    try:
        home.mkdir(parents=True, exist_ok=True)
        if not _is_intact(target):
            with only_builder(home / f"{world.name}.lock", SHELVE_S):
                if not _is_intact(target):
                    _build(world, home, target)
    except (OSError, subprocess.SubprocessError, DeadlineExceeded) as error:
        _log.warning("%s: its documents were not parsed beforehand: %s", world, error)
        return None
    return target


@functools.cache
def _version() -> str:
    total = hashlib.sha256(f"{sys.version_info[:2]} {_library()}".encode())
    for path in sorted((Path(envkit.__file__).parent / "servers" / "pdf").glob("*.py")):
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:20]


def _library() -> str:
    try:
        return version("pypdfium2")
    except PackageNotFoundError:
        return "absent"


def _build(world: Path, home: Path, target: Path) -> None:
    with scratch(home / f".building-{world.name}") as room:
        fresh = room / "shelf"
        fresh.mkdir()
        _run([sys.executable, "-P", "-m", _PROGRAM, str(world / "filesystem"), str(fresh)])
        fresh.chmod(0o755)
        inventory = json.dumps(_inventory(fresh))
        (fresh / _INVENTORY).write_text(inventory, encoding="utf-8")
        if target.exists():
            target.rename(room / "damaged")
        fresh.rename(target)


def _run(argv: list[str]) -> None:
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=SHELVE_S, check=True
    )
    for line in done.stderr.decode(errors="replace").splitlines():
        _log.info("%s", line)


def _inventory(shelf: Path) -> dict[str, str]:
    names = sorted(name for name in os.listdir(shelf) if name != _INVENTORY)
    return {name: hashlib.sha256((shelf / name).read_bytes()).hexdigest() for name in names}


def _is_intact(shelf: Path) -> bool:
    try:
        recorded = json.loads((shelf / _INVENTORY).read_text(encoding="utf-8"))
        return bool(recorded == _inventory(shelf))
    except (OSError, ValueError):
        return False
