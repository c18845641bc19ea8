# SPDX-License-Identifier: Apache-2.0
"""What the kernel says in its files, and the control groups that this process stands in.

Contract: a file that is not there says nothing, and raises nothing. Linux only in substance.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Roots:
    """Where the kernel's files are; tests point these at trees of their own."""

    proc: Path = Path("/proc")
    cgroup: Path = Path("/sys/fs/cgroup")
    root: Path = Path("/")


KERNEL: Final = Roots()


def cgroups(roots: Roots, controller: str) -> Iterator[Path]:
    """This process's cgroup and every ancestor that is visible, v1 or v2."""
    for line in lines(roots.proc / "self" / "cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        for mount in (roots.cgroup / controller,) if controllers else _v2_mounts(roots):
            relative = Path(path.lstrip("/"))
            for part in (relative, *relative.parents):
                if (mount / part).is_dir():
                    yield mount / part


def _v2_mounts(roots: Roots) -> tuple[Path, ...]:
    return (roots.cgroup, roots.cgroup / "unified")


def threads(roots: Roots, uid: int | None) -> int:
    """Threads alive, of one real user or of all; processes that end meanwhile count as none."""
    total = 0
    for status in roots.proc.glob("[0-9]*/status"):
        fields = dict(line.split(":", 1) for line in lines(status) if ":" in line)
        if uid is None or fields.get("Uid", "-1").split()[0] == str(uid):
            total += int(fields.get("Threads", "0"))
    return total


def is_host_root(roots: Roots) -> bool:
    """Root of the first user namespace: the kernel holds it to no process limit."""
    return os.getuid() == 0 and "0 0 4294967295" in (
        " ".join(line.split()) for line in lines(roots.proc / "self" / "uid_map")
    )


def lines(path: Path) -> list[str]:
    """The lines of a file; none where it cannot be read."""
    try:
        return path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []


def number(path: Path) -> int | None:
    """The whole number in a kernel file; None where the file is absent or says ``max``."""
    text = "".join(lines(path)).strip()
    return int(text) if text.isdecimal() else None


def figure(path: Path, name: str) -> int:
    """The number behind a name, in a file of names and numbers; 0 where it is not there."""
    return sum(int(line.split()[1]) for line in lines(path) if line.split()[:1] == [name])


def entries(path: Path) -> int:
    """How many a directory has."""
    return len(os.listdir(path)) if path.is_dir() else 0
