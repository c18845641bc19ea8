# SPDX-License-Identifier: Apache-2.0
"""What a box may use, and what it did use."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Ceilings of one box. Its own code running into one of them is the model's doing."""

    memory_mib: int = 2048
    """Memory of all processes together, files in the writable layers included."""
    processes: int = 256
    """Processes and threads at one instant."""
    cpus: float = 1.0
    """Share of cores, as a quota over 100 ms."""
    storage_mib: int = 1024
    """Everything written: the overlay of ``/``, ``/filesystem`` and ``/tmp`` together."""
    open_files: int = 4096

    def apply_to_self(self, *, without_cgroup: bool) -> None:
        """Set the rlimits of the calling process; the memory ones only where no cgroup holds."""
        _lower(resource.RLIMIT_NOFILE, self.open_files)
        _lower(resource.RLIMIT_CORE, 0)
        if without_cgroup:
            _lower(resource.RLIMIT_AS, self.memory_mib << 20)
            _lower(resource.RLIMIT_NPROC, self.processes)


_NEAR: Final = 0.95
"""Share of the memory limit at which a kill is taken for the limit's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a box used since it started, and the limits it ran into."""

    cpu_s: float = 0.0
    peak_memory_mib: float = 0.0
    oom_kills: int = 0
    fork_refusals: int = 0
    disk_full: bool = False

    def ran_out_of_memory(self, limits: Limits) -> bool:
        """Whether the box hit its own limit: the host's killer also comes when the host is out."""
        return self.oom_kills > 0 and self.peak_memory_mib >= _NEAR * limits.memory_mib


def _lower(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    ceiling = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (ceiling, ceiling))
