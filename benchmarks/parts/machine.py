# SPDX-License-Identifier: Apache-2.0
"""The machine that a benchmark runs on: what its result says of it, and its limit of open files."""

from __future__ import annotations

import os
import platform
import resource
from pathlib import Path
from typing import Any


def machine() -> dict[str, Any]:
    """The cores that this process may use, memory, system and Python."""
    total_kib = int(Path("/proc/meminfo").read_text().split()[1])
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory_mib": total_kib // 1024,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
    }


def raise_file_limit() -> None:
    """As far as this user may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
