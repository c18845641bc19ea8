# SPDX-License-Identifier: Apache-2.0
"""Real records and a launcher that follows a script, for the logic above the sandboxes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from envkit.fault import EnvkitError, Fault, Phase, SandboxDied, classify
from envkit.preflight.host import Supply
from envkit.preflight.types import (
    Event,
    Leftover,
    Plan,
    RunGauges,
    TrialEnded,
    TrialPhase,
    TrialSpec,
    TrialStarted,
)
from envkit.trial.record import Attempt, TrialRecord

ROOMY = (Supply(resource="memory", free=100_000, limit="MemAvailable", fix="none"),)
BEGIN = 1_790_000_000.0
PHASES = {
    "start": 0.4,
    "gateway": 0.6,
    "setup": 0.1,
    "act": 2.0,
    "collect": 0.2,
    "grade": 1.0,
    "stop": 0.1,
}


def fault_of(error: BaseException | None = None, phase: Phase = Phase.ACT) -> Fault:
    return classify(error or SandboxDied("box 3 exited with 137"), phase)


def make_attempt(number: int = 1, **changes: Any) -> Attempt:
    reward = changes.pop("reward", 1.0)
    values: dict[str, Any] = {
        "number": number,
        "started_at": BEGIN + 5 * (number - 1),
        "phases": PHASES,
        "reward": reward,
        "reward_valid": reward is not None,
        "cpu_s": {"trial": 0.5, "boxes": 0.25},
        "peak_memory_mib": 21.0,
        "tool_calls": 4,
    }
    return Attempt(**{**values, **changes})


def make_record(spec: TrialSpec, *attempts: Attempt, **changes: Any) -> TrialRecord:
    tries = attempts or (make_attempt(),)
    last = tries[-1]
    values: dict[str, Any] = {
        "trial_id": spec.trial_id,
        "task": spec.task_dir.name,
        "sample": spec.sample,
        "agent": spec.agent,
        "attempts": tries,
        "verdict": "no_verdict" if last.reward is None else "graded",
        "reward": last.reward,
        "reward_valid": last.reward_valid,
        "fault": last.faults[0] if last.faults else None,
        "trial_dir": spec.out_dir / spec.trial_id,
        "seconds": 4.4,
    }
    return TrialRecord(**{**values, **changes})


def make_plan_of(
    tmp_path: Path, tasks: Sequence[str] = ("fact", "workbook"), samples: int = 3, **changes: Any
) -> Plan:
    specs = tuple(
        TrialSpec(
            trial_id=f"{task}__{sample:03d}",
            task_dir=tmp_path / "tasks" / task,
            sample=sample,
            agent=changes.get("agent", "replay"),
            out_dir=tmp_path / "out",
            env=changes.get("env", "local"),
        )
        for sample in range(samples)
        for task in tasks
    )
    values: dict[str, Any] = {
        "source": tmp_path / "tasks",
        "specs": specs,
        "broken": (),
        "agent": "replay",
        "env": "local",
        "concurrency": len(specs),
        "out_dir": tmp_path / "out",
        "run_token": "token",
    }
    return Plan(**{**values, **changes})


@dataclass
class Scripted:
    """A launcher whose every trial goes as its script says; a spec without one earns 1.0."""

    script: dict[str, TrialRecord | EnvkitError | None] = field(default_factory=dict)
    live: int | None = None
    """Boxes live at the peak; all of them by default."""
    leftover: list[tuple[Leftover, ...]] = field(default_factory=lambda: [(), ()])
    """What is found before and after the run."""
    hang_after: int | None = None
    """Ended trials after which nothing more happens."""
    closed: bool = False
    waiting: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, specs: Sequence[TrialSpec]) -> AsyncGenerator[Event]:
        try:
            for spec in specs:
                yield TrialStarted(
                    trial_id=spec.trial_id, task=spec.task_dir.name, sample=spec.sample
                )
                yield TrialPhase(trial_id=spec.trial_id, phase="act")
            live = len(specs) if self.live is None else self.live
            yield RunGauges(live_boxes=live, loop_stall_ms=3.0, memory_mib=640.0)
            for n, spec in enumerate(specs):
                if n == self.hang_after:
                    self.waiting.set()
                    await asyncio.Event().wait()
                outcome = self.script.get(spec.trial_id, make_record(spec))
                if isinstance(outcome, Exception):
                    raise outcome
                if outcome is not None:
                    yield TrialEnded(record=outcome)
            yield RunGauges(live_boxes=0, loop_stall_ms=40.0, memory_mib=200.0)
        finally:
            self.closed = True

    def leftovers(self) -> Sequence[Leftover]:
        return self.leftover.pop(0) if len(self.leftover) > 1 else self.leftover[0]


@dataclass
class Spoken:
    """A view that remembers."""

    lines: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)

    def __enter__(self) -> Spoken:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def notice(self, line: str) -> None:
        self.lines.append(line)

    def event(self, event: Event) -> None:
        self.events.append(event)


@dataclass
class Make:
    """What tests build with, rooted in their own directory."""

    tmp_path: Path
    begin: float = BEGIN
    roomy: tuple[Supply, ...] = ROOMY
    attempt = staticmethod(make_attempt)
    record = staticmethod(make_record)
    fault = staticmethod(fault_of)
    launcher = Scripted
    view = Spoken

    def plan(self, *args: Any, **changes: Any) -> Plan:
        return make_plan_of(self.tmp_path, *args, **changes)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    return Make(tmp_path)
