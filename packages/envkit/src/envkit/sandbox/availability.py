# SPDX-License-Identifier: Apache-2.0
"""Can a box be made on this machine? Tried, not guessed; and if not, the one line that fixes it."""

from __future__ import annotations

import platform
import subprocess
from dataclasses import dataclass
from typing import Final

from envkit.fault import SandboxUnavailable
from envkit.sandbox.bwrap import bwrap_binary
from envkit.sandbox.userns import blockers

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
    """Make the smallest box and see."""
    if platform.system() != "Linux":
        return Availability(
            ok=False,
            problem=f"{platform.system()} has no Linux namespaces",
            fix="use a Linux machine, or --env unsafe-process without isolation",
        )
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


def _fix() -> str:
    found = blockers()
    if found:
        return found[0].fix
    return "allow unprivileged user namespaces, or use --env unsafe-process without isolation"
