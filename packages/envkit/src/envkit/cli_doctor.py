# SPDX-License-Identifier: Apache-2.0
"""``envkit doctor``: what works on this machine, what does not, and the one line that fixes it."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

from envkit import __version__
from envkit.preflight.fit import fit
from envkit.preflight.host import measure
from envkit.preflight.text import count, one_line

EXTRAS: Final = {"servers": "mcp", "run": "harbor"}
"""An extra, and the package whose presence shows that it is installed."""

REMAINS: Final = "what is left belongs to another user, or is no run's: remove it by hand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the doctor."""

    name: str
    ok: bool
    text: str


def doctor(*, reap: bool) -> int:
    """Prints every finding; 0 where all of them are good."""
    console = Console()
    findings = [*_machine(), *_extras(), *_boxes(), *_leftovers(reap)]
    for finding in findings:
        mark, colour = ("ok", "green") if finding.ok else ("--", "red")
        line = Text.assemble((mark, colour), f"  {finding.name:<12} {one_line(finding.text, 600)}")
        console.print(line, soft_wrap=True)
    return 0 if all(finding.ok for finding in findings) else 1


def _machine() -> Iterator[Finding]:
    system = f"{platform.system()} {platform.machine()}"
    linux = platform.system() == "Linux"
    advice = "" if linux else "; local boxes need Linux, `envkit audit` and `envkit lint` work here"
    yield Finding(
        name="envkit",
        ok=linux,
        text=f"{__version__} on Python {platform.python_version()}, {system}{advice}",
    )
    if linux:
        room = fit(1, measure(Path.cwd()))
        yield Finding(
            name="room",
            ok=room.ok,
            text=f"{count(room.highest, 'trial')} at once; {room.binds()}",
        )


def _extras() -> Iterator[Finding]:
    for extra, package in EXTRAS.items():
        there = find_spec(package) is not None
        text = "installed" if there else f"not installed: pip install 'envkit[{extra}]'"
        yield Finding(name=f"[{extra}]", ok=there, text=text)


def _boxes() -> Iterator[Finding]:
    from envkit.sandbox import availability

    boxes = availability()
    yield Finding(name="boxes", ok=boxes.ok, text=boxes.line())


def _leftovers(reap: bool) -> Iterator[Finding]:
    from envkit.sandbox import reaper

    left = reaper.find_leftovers()
    if reap:
        found, left = left, reaper.reap()
        for gone in sorted(set(found) - set(left)):
            yield Finding(name="removed", ok=True, text=f"{gone.kind} {gone.what}")
    for leak in left:
        yield Finding(name="left over", ok=False, text=f"{leak.kind} {leak.what}")
    if left:
        fix = REMAINS if reap else "to remove it: envkit doctor --reap"
        yield Finding(name="left over", ok=False, text=fix)
    else:
        yield Finding(name="left over", ok=True, text="nothing")
