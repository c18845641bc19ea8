# SPDX-License-Identifier: Apache-2.0
"""What this machine has left for trials: memory, descriptors, processes, disk, namespaces.

Contract: each ``Supply`` is the tightest limit of its kind that this process stands under, with
the file or rlimit that sets it. A limit that does not exist on this host is left out; reading
never raises for one. Linux only in substance: elsewhere only rlimits and disk are found.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from envkit.preflight.kernel_files import (
    KERNEL,
    Roots,
    cgroups,
    entries,
    figure,
    is_host_root,
    lines,
    number,
    threads,
)

MIB: Final = 1024 * 1024
UNLIMITED: Final = 2**60
"""cgroup v1 writes "no limit" as the largest page-aligned number; nothing real is this large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """How much of one resource is free."""

    resource: str
    """``memory``, ``open files``, ``processes``, ``disk``, ``inodes`` or ``namespaces``."""
    free: int
    """In the resource's own unit; memory and disk in MiB."""
    limit: str
    """What sets the limit, as a person would look it up."""
    fix: str
    """What raises it."""

    @property
    def unit(self) -> str:
        """`` MiB`` or nothing, to be put behind a number."""
        return " MiB" if self.resource in ("memory", "disk") else ""


def measure(run_dir: Path, roots: Roots = KERNEL) -> tuple[Supply, ...]:
    """Every limit that binds trials whose files go to ``run_dir``."""
    readers: tuple[Callable[[], Iterator[Supply]], ...] = (
        lambda: _memory(roots),
        lambda: _open_files(roots),
        lambda: _processes(roots),
        lambda: _namespaces(roots),
        lambda: _disk(run_dir),
    )
    return tuple(supply for reader in readers for supply in reader())


def cores(roots: Roots = KERNEL) -> float:
    """CPUs this process may use at once: its affinity, or less where a cgroup's quota binds."""
    found = [float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)]
    for group in cgroups(roots, "cpu"):
        quota, period = [*" ".join(lines(group / "cpu.max")).split(), "", ""][:2]
        if not quota:
            quota = "".join(lines(group / "cpu.cfs_quota_us"))
            period = "".join(lines(group / "cpu.cfs_period_us"))
        if quota.isdecimal() and period.isdecimal() and int(period):
            found.append(int(quota) / int(period))
    return min(found)


def _memory(roots: Roots) -> Iterator[Supply]:
    for line in lines(roots.proc / "meminfo"):
        if line.startswith("MemAvailable:"):
            free = int(line.split()[1]) // 1024
            yield Supply(
                resource="memory",
                free=free,
                limit="MemAvailable in /proc/meminfo",
                fix="stop what uses memory, or use a larger machine",
            )
    for group in cgroups(roots, "memory"):
        for limit, usage, reclaimable in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            top, used = number(group / limit), number(group / usage)
            if top is None or used is None or top >= UNLIMITED:
                continue
            free = top - used + figure(group / "memory.stat", reclaimable)
            yield Supply(
                resource="memory",
                free=max(0, free) // MIB,
                limit=str(group / limit),
                fix="raise the container's or service's memory limit",
            )


def _open_files(roots: Roots) -> Iterator[Supply]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY:
        top = "unlimited" if hard == resource.RLIM_INFINITY else str(hard)
        yield Supply(
            resource="open files",
            free=soft - entries(roots.proc / "self" / "fd"),
            limit=f"ulimit -n {soft}",
            fix=f"ulimit -n N, up to {top} in this shell",
        )
    fields = " ".join(lines(roots.proc / "sys/fs/file-nr")).split()
    if len(fields) == 3:
        yield Supply(
            resource="open files",
            free=int(fields[2]) - int(fields[0]),
            limit="fs.file-max",
            fix="sysctl -w fs.file-max=N",
        )


def _processes(roots: Roots) -> Iterator[Supply]:
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft != resource.RLIM_INFINITY and not is_host_root(roots):
        yield Supply(
            resource="processes",
            free=soft - threads(roots, os.getuid()),
            limit=f"ulimit -u {soft}",
            fix="ulimit -u N, or nproc in /etc/security/limits.conf",
        )
    for group in cgroups(roots, "pids"):
        top, used = number(group / "pids.max"), number(group / "pids.current")
        if top is not None and used is not None:
            yield Supply(
                resource="processes",
                free=top - used,
                limit=str(group / "pids.max"),
                fix="raise the container's pids limit (docker run --pids-limit N)",
            )
    for name in ("pid_max", "threads-max"):
        top = number(roots.proc / "sys/kernel" / name)
        if top is not None:
            yield Supply(
                resource="processes",
                free=top - threads(roots, None),
                limit=f"kernel.{name}",
                fix=f"sysctl -w kernel.{name}=N",
            )


def _namespaces(roots: Roots) -> Iterator[Supply]:
    for kind in ("user", "mnt", "net", "pid"):
        name = f"max_{kind}_namespaces"
        top = number(roots.proc / "sys/user" / name)
        if top is not None:
            yield Supply(
                resource="namespaces",
                free=top,
                limit=f"user.{name}",
                fix=f"sysctl -w user.{name}=N",
            )


def _disk(run_dir: Path) -> Iterator[Supply]:
    there = next(path for path in (run_dir, *run_dir.absolute().parents) if path.exists())
    stat = os.statvfs(there)
    fix = "free some, or put the run elsewhere with --report DIR"
    yield Supply(
        resource="disk",
        free=stat.f_bavail * stat.f_frsize // MIB,
        limit=f"free space at {there}",
        fix=fix,
    )
    if stat.f_files:  # file systems that make inodes as they need them say 0
        yield Supply(
            resource="inodes", free=stat.f_favail, limit=f"free inodes at {there}", fix=fix
        )
