# SPDX-License-Identifier: Apache-2.0
"""The highest concurrency that fits on this machine, and the resource that binds it.

Contract: arithmetic over what ``host.measure`` found and what a trial costs; never starts
anything. A run that does not fit is refused before its first box: half of 500 trials dying of a
full process table would read as 250 faults of the tasks. Cores never refuse a run, because trials
that share them are only slower; a notice says from where on that is no longer harmless.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from envkit.preflight.host import Supply


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One resource: what a run takes at all, and what each live trial adds."""

    base: int
    a_trial: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What trials in ``local`` boxes take, as measured; memory and disk in MiB."""

    memory: Cost = Cost(base=1024, a_trial=25)
    """300 replays of eight tasks took 7,000 MiB when all of them were up, 23 MiB each, and less
    from there on: only a few work at once (`envkit.sandbox.turns`). Working, a trial has 33. The
    base is the fork server with its warm libraries and what those few need."""
    open_files: Cost = Cost(base=128, a_trial=12)
    """Held by the one process that starts everything: a pidfd, an info pipe and namespace handles
    a box, the gateway's sockets, the trial's pipe."""
    processes: Cost = Cost(base=64, a_trial=12)
    """bubblewrap, its init and the sleeper of three boxes, the gateway, the trial, one command."""
    namespaces: Cost = Cost(base=16, a_trial=3)
    """One of each kind a box."""
    disk: Cost = Cost(base=256, a_trial=2)
    """Logs, artifacts and the record; the base is a root file system built for the first time."""
    inodes: Cost = Cost(base=8192, a_trial=64)
    """The same, counted in files."""
    trials_a_core: int = 16
    """At once, before commands run into their own limits. Importing pandas in 64 processes on 2
    cores took each 35 s, 50 times as long as alone, and 16 s in 32 (`benchmarks/crowded_cores.py`):
    a command is given 60 s, has more to do than that, and starts cold in a box."""

    def of(self, resource: str) -> Cost:
        """The cost of a resource by the name that ``Supply`` gives it; not of cores."""
        return getattr(self, resource.replace(" ", "_"))


DEFAULT_COSTS: Final = Costs()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Whether a concurrency fits."""

    wanted: int
    highest: int
    binding: Supply
    """The resource that runs out first."""
    cost: Cost

    @property
    def ok(self) -> bool:
        return self.wanted <= self.highest

    def binds(self) -> str:
        """What runs out first: how much is free, where its limit is, what a trial takes."""
        scarce, cost = self.binding, self.cost
        return (
            f"{scarce.resource} binds: {scarce.free:,}{scarce.unit} free ({scarce.limit}), "
            f"{cost.base:,} + {cost.a_trial}{scarce.unit} a trial"
        )

    def line(self, option: str = "--concurrency") -> str:
        """One line: the highest concurrency, what binds it, and what to do when it is too low."""
        if self.ok:
            return f"concurrency {self.wanted} fits, up to {self.highest} would; {self.binds()}"
        smaller = f"use {option} {self.highest}, or " if self.highest else ""
        return (
            f"concurrency {self.wanted} does not fit, {self.highest} would; {self.binds()}; "
            f"{smaller}{self.binding.fix}"
        )


def fit(wanted: int, supplies: Iterable[Supply], costs: Costs = DEFAULT_COSTS) -> Fit:
    """The tightest of all supplies decides."""
    highest, binding = min(
        ((_holds(supply, costs), supply) for supply in supplies), key=lambda pair: pair[0]
    )
    return Fit(wanted=wanted, highest=highest, binding=binding, cost=costs.of(binding.resource))


def crowding(wanted: int, cores: float, costs: Costs = DEFAULT_COSTS) -> str:
    """One line where so many trials share so few cores that commands may run out of time; or none.

    No gate: trials wait for engines and tools most of their time, and only what computes is slow.
    """
    roomy = max(1, int(cores * costs.trials_a_core))
    if wanted <= roomy:
        return ""
    return (
        f"{wanted} trials on {cores:g} cores: where more than {roomy} compute at once, a command "
        "takes many times as long as alone and may run into its own limit"
    )


def _holds(supply: Supply, costs: Costs) -> int:
    cost = costs.of(supply.resource)
    return max(0, (supply.free - cost.base) // cost.a_trial)
