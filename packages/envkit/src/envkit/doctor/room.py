# SPDX-License-Identifier: Apache-2.0
"""What so many trials need of each resource, what this machine has, and which binds first."""

from __future__ import annotations

import resource
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from envkit.doctor.types import Finding, Machine, Status
from envkit.preflight.fit import DEFAULT_COSTS, fit
from envkit.preflight.host import Supply, cores, measure
from envkit.preflight.text import count
from envkit.sandbox.turns import at_work

LIMITS: Final = {"open files": resource.RLIMIT_NOFILE, "processes": resource.RLIMIT_NPROC}


def examine(
    machine: Machine, trials: int, places: Mapping[str, Path] | None = None
) -> Iterator[Finding]:
    """Each resource by its tightest limit; ``places`` are further directories, by their names."""
    supplies = measure(machine.run_dir, machine.roots)
    yield _summary(trials, supplies)
    for name in dict.fromkeys(supply.resource for supply in supplies):
        tightest = min((s for s in supplies if s.resource == name), key=lambda s: s.free)
        yield _resource(machine, trials, tightest)
    for name, place in (places or {}).items():
        yield from _place(machine, name, place)
    yield _cores(trials, machine)


def _summary(trials: int, supplies: Sequence[Supply]) -> Finding:
    room = fit(trials, supplies)
    return Finding(
        name="room",
        status=Status.OK if room.ok else Status.FAIL,
        text=f"{count(room.highest, 'trial')} at once; {room.binds()}",
        fix="" if room.ok else room.binding.fix,
        needed_for=f"{count(trials, 'trial')} at once",
    )


def _resource(machine: Machine, trials: int, supply: Supply) -> Finding:
    cost = DEFAULT_COSTS.of(supply.resource)
    need = cost.base + trials * cost.a_trial
    enough = supply.free >= need
    return Finding(
        name=supply.resource,
        status=Status.OK if enough else Status.FAIL,
        text=f"{supply.free:,}{supply.unit} free ({supply.limit}){_limits(machine, supply)}; "
        f"{count(trials, 'trial')} at once need {need:,}{supply.unit}",
        fix="" if enough else _fix(machine, supply, need),
    )


def _fix(machine: Machine, supply: Supply, need: int) -> str:
    """With the number, where the limit is this process's own: what is used stays used."""
    kind = LIMITS.get(supply.resource)
    if kind is None or not supply.limit.startswith("ulimit"):
        return supply.fix
    soft, _ = machine.limit(kind)
    return supply.fix.replace("N", str(soft - supply.free + need), 1)


def _limits(machine: Machine, supply: Supply) -> str:
    """Soft and hard limit of this process, where there is one of that kind."""
    kind = LIMITS.get(supply.resource)
    if kind is None:
        return ""
    soft, hard = (_number(value) for value in machine.limit(kind))
    return f", soft limit {soft}, hard {hard}"


def _number(value: int) -> str:
    return "none" if value == resource.RLIM_INFINITY else str(value)


def _place(machine: Machine, name: str, place: Path) -> Iterator[Finding]:
    """Room in one directory, such as the cache, however many trials there are."""
    for supply in measure(place, machine.roots):
        if supply.resource not in ("disk", "inodes"):
            continue
        need = DEFAULT_COSTS.of(supply.resource).base
        enough = supply.free >= need
        yield Finding(
            name=f"{name}: {supply.resource}",
            status=Status.OK if enough else Status.FAIL,
            text=f"{supply.free:,}{supply.unit} free ({supply.limit}); "
            f"a run needs {need:,}{supply.unit}",
            fix="" if enough else f"free some at {place}",
        )


def _cores(trials: int, machine: Machine) -> Finding:
    here = cores(machine.roots)
    working = at_work(None, here, here=True)
    text = f"{here:g}; {min(trials, working)} trials work at once"
    rest = ", the others wait their turn" if trials > working else ""
    return Finding(name="cores", status=Status.OK, text=text + rest, fix="")
