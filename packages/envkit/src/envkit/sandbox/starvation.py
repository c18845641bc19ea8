# SPDX-License-Identifier: Apache-2.0
"""Did a command outlive its limit, or did this machine never let it run?

A command of 0.6 s outlives ten seconds where 64 of them share two cores, and that is not its
agent's doing. The kernel counts for each task how long it was runnable and waited for a core
(``/proc/PID/task/TID/schedstat``, second field). Waiting that the box's own quota caused looks
alike, but then the box has used its quota; so both are asked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

WAITED_SHARE: Final = 0.5
"""Of its time: a command that waited for a core so long was held up by others."""

USED_SHARE: Final = 0.25
"""Of its quota: a box that used so much had its chance, since a limit is a multiple of the need."""


def starved(
    root: int,
    *,
    wall_s: float,
    cpu_s: float | None,
    cpus: float,
    followers: Mapping[int, int] = MappingProxyType({}),
) -> bool:
    """Whether the command under process ``root`` waited for others in its ``wall_s`` seconds.

    ``cpu_s`` is what the box used meanwhile, ``cpus`` its quota; ``None`` where nobody counts.
    ``followers`` are processes that work for one of the command, without being its children.
    What has ended already is not seen: a shell that starts one short command after another is
    judged by the one that runs.
    """
    if cpu_s is not None and cpu_s >= USED_SHARE * cpus * wall_s:
        return False
    waited = max((_waited_s(pid) for pid in _tree(root, followers)), default=0.0)
    return waited >= WAITED_SHARE * wall_s


def _tree(root: int, followers: Mapping[int, int]) -> Iterator[int]:
    queue = [root]
    while queue:
        pid = queue.pop()
        yield pid
        for path in _tasks(pid, "children"):
            queue += [int(child) for child in _read(path).split()]
        if pid in followers:
            queue.append(followers[pid])


def _waited_s(pid: int) -> float:
    """The longest that one of a process's threads waited for a core, in seconds."""
    fields = (_read(path).split() for path in _tasks(pid, "schedstat"))
    return max((int(f[1]) / 1e9 for f in fields if len(f) == 3), default=0.0)


def _tasks(pid: int, file: str) -> list[Path]:
    with contextlib.suppress(OSError):  # it has ended
        return [task / file for task in Path(f"/proc/{pid}/task").iterdir()]
    return []


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""  # it has ended, or this kernel does not count
