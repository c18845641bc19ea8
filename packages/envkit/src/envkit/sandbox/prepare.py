# SPDX-License-Identifier: Apache-2.0
"""Do once, before any trial, what all trials of a task share: its root and its world on disk."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from envkit.image.rootfs import RootSpec, ensure_rootfs, uid_outside
from envkit.sandbox.parsed import ensure_parsed
from envkit.sandbox.stage import files_uid
from envkit.task import load_task, materialize

PDF_SERVER: Final = "pdf_server"
"""A world without it has nobody to read its documents for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Where the shared parts of a task's boxes lie on this machine."""

    root: Path
    world: Path | None
    servers: tuple[str, ...]
    tools: tuple[str, ...] = ()
    """Those that the servers offer; empty for all."""
    parsed: Path | None = None
    """The documents of the world, laid out; None where there is nothing to lay out."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        places = {name: str(path) if path else None for name, path in self._places().items()}
        names = {"servers": list(self.servers), "tools": list(self.tools)}
        return {"root": str(self.root), **names, **places}

    def _places(self) -> dict[str, Path | None]:
        return {"world": self.world, "parsed": self.parsed}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Read back :meth:`to_dict`."""
        world, parsed = (Path(data[n]) if data.get(n) else None for n in ("world", "parsed"))
        servers, tools = (tuple(data[name]) for name in ("servers", "tools"))
        return cls(
            root=Path(data["root"]), world=world, servers=servers, tools=tools, parsed=parsed
        )


def cache_directory() -> Path:
    """``$ENVKIT_CACHE``, else ``envkit`` in the user's cache."""
    if named := os.environ.get("ENVKIT_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "envkit"


def prepare(task_dir: Path, cache: Path | None = None) -> Prepared:
    """Build, or find in the cache, what boxes of this task need.

    Raises:
        TaskError: the task or its world is broken.
        SandboxUnavailable: a root cannot be built here.
    """
    cache = cache or cache_directory()
    world = load_task(task_dir).world
    spec = RootSpec(packages=world.packages if world else (), owner_uid=files_uid())
    files = materialize(world, cache) if world else None
    if files is not None:
        _give(files, files_uid())
    servers = world.servers if world else ()
    parsed = ensure_parsed(files, cache) if files and PDF_SERVER in servers else None
    return Prepared(
        root=ensure_rootfs(spec, cache),
        world=files,
        servers=servers,
        tools=world.tools if world else (),
        parsed=parsed,
    )


def _give(path: Path, uid: int) -> None:
    """Let the boxes' user own a world, so that an agent may change what it sees as its own."""
    if uid == uid_outside() or path.stat().st_uid == uid:
        return
    for directory, names, files in os.walk(path, topdown=False):
        for name in (*names, *files):
            os.chown(os.path.join(directory, name), uid, uid, follow_symlinks=False)
    os.chown(path, uid, uid)  # last: an interrupted change of owner is done again
