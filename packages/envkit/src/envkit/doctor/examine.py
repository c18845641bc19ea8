# SPDX-License-Identifier: Apache-2.0
"""All probes, in the order in which a person should look at what they find.

Contract: one probe that breaks costs no other: it becomes a finding. Nothing is changed on this
machine, unless leftovers are to be removed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from envkit.doctor import (
    bubblewrap,
    cgroups,
    clock,
    gateways,
    interpreter,
    keys,
    leftovers,
    namespaces,
    programs,
    room,
)
from envkit.doctor.types import Finding, Machine, Status
from envkit.sandbox.availability import box_availability, gateway_availability
from envkit.sandbox.cgroup import find_parent
from envkit.sandbox.prepare import cache_directory

type Probe = Callable[[], Iterator[Finding]]


def examine(*, trials: int, reap: bool) -> Iterator[Finding]:
    """Every finding about this machine, for so many trials at once."""
    machine = Machine()
    boxes = box_availability()
    probes: tuple[tuple[str, Probe], ...] = (
        ("envkit", interpreter.examine),
        ("room", lambda: room.examine(machine, trials, _places())),
        ("user namespaces", lambda: namespaces.examine(machine, boxes.ok)),
        ("cgroups", lambda: cgroups.examine(machine, _usable())),
        ("bubblewrap", lambda: bubblewrap.examine(machine, boxes)),
        ("gateways", lambda: gateways.examine(gateway_availability())),
        ("clock", clock.examine),
        ("programs", lambda: programs.examine(machine)),
        ("keys", lambda: keys.examine(machine)),
        ("left over", lambda: leftovers.examine(reap=reap)),
    )
    for name, probe in probes:
        yield from guarded(name, probe)


def guarded(name: str, probe: Probe) -> Iterator[Finding]:
    """What a probe finds, and that it broke where it did."""
    try:
        yield from probe()
    except Exception as error:  # the boundary: whatever a machine may show us
        yield Finding(
            name=name,
            status=Status.FAIL,
            text=f"could not be examined: {type(error).__name__}: {error}",
            fix="this is a defect of envkit's doctor; report it with this line",
        )


def _places() -> dict[str, Path]:
    """What fills up besides the directory of a run."""
    return {"cache": cache_directory(), "temporary": Path(tempfile.gettempdir())}


def _usable() -> int:
    parent = find_parent()
    return parent.version if parent else 0
