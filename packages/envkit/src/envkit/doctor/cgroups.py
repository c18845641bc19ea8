# SPDX-License-Identifier: Apache-2.0
"""Which control groups there are, and whether limits of boxes can be set in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from envkit.doctor.types import Finding, Machine, Status

NEEDED: Final = frozenset({"memory", "pids"})
FOR: Final = "limits of a whole box, and its CPU seconds while it lives"
RLIMITS: Final = "boxes are held by rlimits alone: each of their processes for itself"


def examine(machine: Machine, usable: int) -> Iterator[Finding]:
    """``usable`` is the version in which groups could be made just now; 0 where none could."""
    kind = kind_of(machine)
    if usable:
        yield Finding(
            name="cgroups",
            status=Status.OK,
            text=f"{kind}; groups can be made in version {usable}",
            needed_for=FOR,
        )
        return
    yield Finding(
        name="cgroups",
        status=Status.WARN,
        text=f"{kind}; {_why(machine)}, so {RLIMITS}",
        fix=_fix(machine),
        needed_for=FOR,
    )


def kind_of(machine: Machine) -> str:
    """``version 1``, ``version 2``, both, or ``none``."""
    root = machine.roots.cgroup
    first = any((root / name).is_dir() for name in NEEDED)
    second = any((place / "cgroup.controllers").is_file() for place in (root, root / "unified"))
    if first and second:
        return "versions 1 and 2"
    return "version 1" if first else "version 2" if second else "none"


def _why(machine: Machine) -> str:
    kind = kind_of(machine)
    if kind == "none":
        return f"nothing is mounted at {machine.roots.cgroup}"
    if kind != "version 2":
        return "its directories cannot be written"
    missing = sorted(NEEDED - _enabled(machine))
    return f"{' and '.join(missing)} not delegated here" if missing else "it cannot be written"


def _enabled(machine: Machine) -> set[str]:
    """Controllers that children of our own group would have."""
    try:
        own = (machine.roots.proc / "self" / "cgroup").read_text()
        path = next(line[3:] for line in own.splitlines() if line.startswith("0::"))
        group = machine.roots.cgroup / path.lstrip("/")
        return set((group / "cgroup.subtree_control").read_text().split())
    except (OSError, StopIteration):
        return set()


def _fix(machine: Machine) -> str:
    if kind_of(machine) == "version 2":
        return "run under: systemd-run --user --scope -p Delegate=yes, or as root of the host"
    if kind_of(machine) == "none":
        return "mount them, or start the container with --cgroupns=host -v /sys/fs/cgroup"
    return "run as root, or have a group of yours made below memory and pids"
