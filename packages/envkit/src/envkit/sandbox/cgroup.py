# SPDX-License-Identifier: Apache-2.0
"""Control groups for boxes, version 1 or 2, where the machine lets us write them.

Contract: ``find_parent`` answers with a place where groups can be made, or ``None``: then
rlimits hold instead. A group is named ``envkit-<run>-<box>``, so that what a killed run left can
be found by name. Attaching happens through descriptors opened beforehand, because a process
that has entered a box no longer sees the cgroup file systems.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from envkit.sandbox.limits import Limits, Usage

PREFIX: Final = "envkit-"

_ROOT: Final = Path("/sys/fs/cgroup")
_V1: Final = ("memory", "pids", "cpu", "cpuacct")
_V2_NEEDED: Final = frozenset({"memory", "pids"})
_CPU_PERIOD_US: Final = 100_000
_TRIES: Final = 300
_TRY_S: Final = 0.01


@dataclass(frozen=True, slots=True)
class Parent:
    """Where groups are made: one directory for version 2, one a controller for version 1."""

    version: int
    directories: Mapping[str, Path]


@dataclass(frozen=True, slots=True)
class Group:
    """One group of processes under limits."""

    name: str
    parent: Parent

    @classmethod
    def create(cls, parent: Parent, name: str, limits: Limits) -> Group:
        """Make the group and set its limits.

        Raises:
            OSError: the kernel refused.
        """
        group = cls.named(parent, name)
        for path in group.paths():
            path.mkdir(exist_ok=True)
        for controller, file, value in _settings(parent.version, limits):
            (group.path(controller) / file).write_text(value)
        return group

    @classmethod
    def named(cls, parent: Parent, name: str) -> Group:
        """The group of that name, whether it exists or not."""
        return cls(PREFIX + name, parent)

    def path(self, controller: str) -> Path:
        """Directory of this group for one controller."""
        directories = self.parent.directories
        return directories.get(controller, directories.get("", _ROOT)) / self.name

    def paths(self) -> list[Path]:
        """Every directory of this group, each once."""
        return list(dict.fromkeys(d / self.name for d in self.parent.directories.values()))

    def open_procs(self) -> list[int]:
        """Descriptors that attach whoever writes ``0`` to them; the caller closes them."""
        return [os.open(path / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC) for path in self.paths()]

    def pids(self) -> set[int]:
        """Host process ids in the group."""
        found: set[int] = set()
        for path in self.paths():
            with contextlib.suppress(FileNotFoundError):
                found |= {int(line) for line in (path / "cgroup.procs").read_text().split()}
        return found

    def usage(self) -> Usage:
        """What the group used so far."""
        return _usage_v2(self.path("")) if self.parent.version == 2 else _usage_v1(self)

    def cpu_s(self) -> float:
        """CPU seconds so far: one read, where `usage` takes several."""
        if self.parent.version == 2:
            return _pairs(self.path("") / "cpu.stat").get("usage_usec", 0) / 1e6
        return _number(self.path("cpuacct") / "cpuacct.usage") / 1e9

    def kill(self) -> None:
        """SIGKILL every member; members may still be dying when this returns."""
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def remove(self) -> bool:
        """Remove the group; false while a member is still dying."""
        for path in self.paths():
            try:
                path.rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                return False
        return True


async def dissolve(group: Group) -> bool:
    """Kill the members and remove the group; false when one resists.

    Members vanish a moment after their namespace, hence the tries.
    """
    for _ in range(_TRIES):
        group.kill()
        if group.remove():
            return True
        await asyncio.sleep(_TRY_S)
    return False


def find_parent() -> Parent | None:
    """Where this process may make groups, or ``None``."""
    own = _own_groups()
    for parent in (_v2_parent(own), _v1_parent(own)):
        if parent is not None and _works(parent):
            return parent
    return None


def leftovers(parent: Parent) -> Iterator[str]:
    """Names of envkit's groups that exist now, without the prefix."""
    seen: set[str] = set()
    for directory in parent.directories.values():
        seen |= {path.name for path in directory.glob(f"{PREFIX}*") if path.is_dir()}
    yield from sorted(name.removeprefix(PREFIX) for name in seen)


def _own_groups() -> dict[str, str]:
    groups: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            groups[controller] = path
    return groups


def _v1_parent(own: Mapping[str, str]) -> Parent | None:
    directories = {name: _v1_directory(name, own) for name in _V1 if (_ROOT / name).is_dir()}
    if not {"memory", "pids"} <= directories.keys():
        return None
    return Parent(1, directories)


def _v1_directory(controller: str, own: Mapping[str, str]) -> Path:
    """Our own group if it is visible here, else the root of the hierarchy."""
    below = _ROOT / controller / own.get(controller, "/").lstrip("/")
    return below if below.is_dir() else _ROOT / controller


def _v2_parent(own: Mapping[str, str]) -> Parent | None:
    below = _ROOT / own.get("", "/").lstrip("/")
    directory = below if (below / "cgroup.controllers").is_file() else _ROOT
    try:
        enabled = set((directory / "cgroup.subtree_control").read_text().split())
    except OSError:
        return None
    return Parent(2, {"": directory}) if enabled >= _V2_NEEDED else None


def _works(parent: Parent) -> bool:
    """Make, fill and remove one group: permissions alone do not tell."""
    try:
        group = Group.create(parent, f"probe-{os.getpid()}", Limits())
    except OSError:
        return False
    return group.remove()


def _settings(version: int, limits: Limits) -> list[tuple[str, str, str]]:
    quota = str(int(limits.cpus * _CPU_PERIOD_US))
    memory = str(limits.memory_mib << 20)
    if version == 2:
        return [
            ("", "memory.max", memory),
            ("", "pids.max", str(limits.processes)),
            ("", "cpu.max", f"{quota} {_CPU_PERIOD_US}"),
        ]
    return [
        ("memory", "memory.limit_in_bytes", memory),
        ("pids", "pids.max", str(limits.processes)),
        ("cpu", "cpu.cfs_quota_us", quota),
    ]


def _usage_v1(group: Group) -> Usage:
    events = _pairs(group.path("memory") / "memory.oom_control")
    pids = _pairs(group.path("pids") / "pids.events")
    return Usage(
        cpu_s=_number(group.path("cpuacct") / "cpuacct.usage") / 1e9,
        peak_memory_mib=_number(group.path("memory") / "memory.max_usage_in_bytes") / (1 << 20),
        oom_kills=events.get("oom_kill", 0),
        fork_refusals=pids.get("max", 0),
    )


def _usage_v2(path: Path) -> Usage:
    return Usage(
        cpu_s=_pairs(path / "cpu.stat").get("usage_usec", 0) / 1e6,
        peak_memory_mib=_number(path / "memory.peak") / (1 << 20),
        oom_kills=_pairs(path / "memory.events").get("oom_kill", 0),
        fork_refusals=_pairs(path / "pids.events").get("max", 0),
    )


def _pairs(path: Path) -> dict[str, int]:
    try:
        lines = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {parts[0]: int(parts[1]) for parts in lines if len(parts) == 2 and parts[1].isdigit()}


def _number(path: Path) -> float:
    try:
        return float(path.read_text().strip())
    except (OSError, ValueError):
        return 0.0  # a counter this kernel does not keep reads as nothing used
