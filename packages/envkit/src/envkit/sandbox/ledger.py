# SPDX-License-Identifier: Apache-2.0
"""What happened to the boxes of the trial in this process, whether anybody up the stack saw it.

Harbor swallows some failures (a lost artifact, a teardown) and renames others. What the guard
saw stands here, and decides with the exception whether a reward is valid. One process runs one
trial, so there is one ledger a process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from envkit.deadline import DEFAULT_BUDGETS, Budgets
from envkit.fault import Fault, Phase, classify
from envkit.sandbox.canary import Canary
from envkit.sandbox.limits import Usage

PhaseSink = Callable[[str], None]

_PHASE_OF: Mapping[str, Phase] = {
    "start": Phase.START,
    "gateway": Phase.START,
    "setup": Phase.SETUP,
    "hold": Phase.SETUP,
    "turn": Phase.SETUP,
    "act": Phase.ACT,
    "think": Phase.ACT,
    "idle": Phase.ACT,
    "collect": Phase.COLLECT,
    "grade": Phase.GRADE,
    "regrade": Phase.GRADE,
    "stop": Phase.STOP,
}


@dataclass(slots=True)
class Ledger:
    """Faults, usage and time of one trial."""

    faults: list[Fault] = field(default_factory=list[Fault])
    usage: dict[str, Usage] = field(default_factory=dict[str, Usage])
    """By box: ``agent``, ``gateway``, ``verifier``."""
    left: list[str] = field(default_factory=list[str])
    """What a teardown could not remove."""
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    """By phase, in the order they began."""
    on_phase: PhaseSink | None = None
    commands_s: float = 0.0
    """Seconds in which the agent's own commands ran, those that waited for a core left out."""
    own_s: float | None = None
    """Seconds of the model's own, sampling and its calls, as its loop counted them; None where
    nobody did."""
    canary: Canary | None = None
    """The marks of this trial, where its boxes are searched for the others'."""
    tools: tuple[str, ...] = ()
    """Names of the tools that the trial's servers listed."""
    agent_storage_mib: int = 0
    """What the agent's box may write: the verifier's must hold it."""
    budgets: Budgets = DEFAULT_BUDGETS
    """What each operation of this trial may take."""
    _name: str = ""
    _since: float = 0.0

    @property
    def phase(self) -> Phase:
        """Where the trial is now, in the terms of faults."""
        return _PHASE_OF.get(self._name, Phase.RUN)

    def enter(self, name: str) -> None:
        """The trial is in phase ``name`` from now on."""
        now = time.monotonic()
        if self._name:
            self.seconds[self._name] += now - self._since
        self._name, self._since = name, now
        if name:
            self.seconds.setdefault(name, 0.0)
            if self.on_phase:
                self.on_phase(name)

    @contextmanager
    def during(self, name: str) -> Generator[None]:
        """Be in phase ``name`` for a while, then in the one before."""
        before = self._name
        self.enter(name)
        try:
            yield
        finally:
            self.enter(before)

    def grading(self) -> bool:
        """True once the verifier's turn has come: its box's start and stop belong to it."""
        return self._name == "grade"

    def invalid(self) -> bool:
        """True once something stands here that takes the reward away."""
        return any(not fault.policy.reward_valid for fault in self.faults)

    def note(self, error: BaseException) -> None:
        """Remember what went wrong, classified where it happened; the same twice counts once."""
        fault = classify(error, self.phase)
        if fault not in self.faults:
            self.faults.append(fault)


_current = Ledger()


@contextmanager
def aside(name: str) -> Generator[Ledger]:
    """A ledger of its own for something more that this process does with the same trial.

    It is in phase ``name`` throughout; what goes wrong in there is not held against the trial.
    """
    global _current
    trial = _current
    _current = Ledger(budgets=trial.budgets, agent_storage_mib=trial.agent_storage_mib)
    _current.enter(name)
    try:
        yield _current
    finally:
        _current.enter("")
        _current = trial


def ledger() -> Ledger:
    """The ledger of the trial in this process."""
    return _current


def begin(on_phase: PhaseSink | None = None, budgets: Budgets = DEFAULT_BUDGETS) -> Ledger:
    """A new trial begins in this process."""
    global _current
    _current = Ledger(on_phase=on_phase, budgets=budgets)
    return _current
