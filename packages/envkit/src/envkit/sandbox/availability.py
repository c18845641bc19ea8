# SPDX-License-Identifier: Apache-2.0
"""Can boxes be made on this machine? Tried, not guessed; and if not, the one line that fixes it."""

from __future__ import annotations

import platform
import re
import subprocess
from dataclasses import dataclass
from typing import Final

from envkit.fault import SandboxUnavailable
from envkit.sandbox.bwrap import bwrap_binary
from envkit.sandbox.userns import blockers

OLDEST: Final = (5, 12)
"""The first Linux that has every system call of `envkit.sandbox.mounts`."""
_PROBE_S: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """Whether boxes can be made here."""

    ok: bool
    problem: str = ""
    fix: str = ""

    def line(self) -> str:
        """One line for a person."""
        return "boxes can be made here" if self.ok else f"{self.problem}; {self.fix}"


def availability() -> Availability:
    """Whether all boxes of a trial can be made here."""
    box = box_availability()
    return gateway_availability() if box.ok else box


def box_availability() -> Availability:
    """Make the smallest box of bubblewrap's and see."""
    if platform.system() != "Linux":
        return _not_linux()
    try:
        binary = bwrap_binary()
    except SandboxUnavailable as error:
        return Availability(ok=False, problem=str(error), fix="then run envkit doctor")
    try:
        done = subprocess.run(
            [binary, *"--unshare-all --unshare-user --ro-bind / / --proc /proc true".split()],
            capture_output=True,
            text=True,
            timeout=_PROBE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Availability(ok=False, problem=f"bubblewrap does not run: {error}", fix=_fix())
    if done.returncode == 0:
        return Availability(ok=True)
    said = (done.stderr.strip().splitlines() or ["no word"])[-1]
    return Availability(ok=False, problem=f"bubblewrap cannot make a box ({said})", fix=_fix())


def gateway_availability() -> Availability:
    """Make the system calls that the boxes of gateways need, in vain, and see who refuses them."""
    if platform.system() != "Linux":
        return _not_linux()
    from envkit.sandbox import mounts  # only Linux can load it

    return judge_gateways(mounts.refused(), platform.release())


def judge_gateways(refused: str, release: str) -> Availability:
    """By the call that is refused, if one is, and the kernel that is running."""
    if not refused:
        return Availability(ok=True)
    old = tuple(map(int, re.findall(r"\d+", release)[:2])) < OLDEST
    return Availability(
        ok=False,
        problem=f"the box of a gateway cannot be made ({refused}, Linux {release})",
        fix="boot Linux 5.12 or later, or use --env unsafe-process without isolation"
        if old
        else "let the filter of this container or service pass it: start it with --privileged, or"
        " with --security-opt seccomp=unconfined, or run on its host",
    )


def _not_linux() -> Availability:
    return Availability(
        ok=False,
        problem=f"{platform.system()} has no Linux namespaces",
        fix="use a Linux machine, or --env unsafe-process without isolation",
    )


def _fix() -> str:
    found = blockers()
    if found:
        return found[0].fix
    return "allow unprivileged user namespaces, or use --env unsafe-process without isolation"
