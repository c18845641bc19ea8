# SPDX-License-Identifier: Apache-2.0
"""What can keep this user from making user namespaces, and so boxes; each with its fix.

Contract: only reads. What is set may still not bind, for root or by a profile: whether boxes can
be made is found out by making one.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

MARKERS: Final = (".dockerenv", "run/.containerenv")
"""Files by which Docker and Podman mark what runs in their containers."""

CAP_SYS_ADMIN: Final = 1 << 21
FILTERED: Final = "2"
"""Of ``Seccomp`` in /proc/self/status: a filter decides about system calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """One thing that stands in the way."""

    what: str
    fix: str


def blockers(proc: Path = Path("/proc"), root: Path = Path("/")) -> list[Blocker]:
    """All there are, the most telling first."""
    found = [
        Blocker(what=what, fix=f"run: sudo sysctl -w {key}={good}")
        for key, bad, good, what in _SYSCTLS
        if _read(proc / "sys" / key.replace(".", "/", 1)) == bad
    ]
    if any((root / marker).exists() for marker in MARKERS):
        found.append(_container(proc))
    return found


_SYSCTLS: Final = (
    (
        "kernel.apparmor_restrict_unprivileged_userns", "1", "0",
        "AppArmor restricts unprivileged user namespaces (Ubuntu since 23.10)",
    ),
    ("user.max_user_namespaces", "0", "100000", "user.max_user_namespaces is 0"),
    (
        "kernel.unprivileged_userns_clone", "0", "1",
        "kernel.unprivileged_userns_clone is 0: only root may make them",
    ),
)  # fmt: skip


def _container(proc: Path) -> Blocker:
    status = _status(proc)
    filtered = status.get("Seccomp") == FILTERED
    admin = int(status.get("CapEff", "0"), 16) & CAP_SYS_ADMIN
    if filtered and not admin:
        return Blocker(
            what="this container's seccomp filter lets only its administrator make namespaces",
            fix="start this container with --privileged, or with --security-opt seccomp=unconfined"
            " --security-opt apparmor=unconfined, or run on its host",
        )
    return Blocker(
        what="this is a container, and its runtime decides what may be made in it",
        fix="start this container with --privileged, or run on its host",
    )


def _status(proc: Path) -> dict[str, str]:
    lines = _read(proc / "self" / "status").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""
