# SPDX-License-Identifier: Apache-2.0
"""What a run says while it happens."""

import asyncio
import io
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from envkit.fault import ServerDisconnected
from envkit.preflight.board import Board
from envkit.preflight.progress import LiveView, PlainView, view_for
from envkit.preflight.types import RunGauges, TrialEnded, TrialPhase, TrialStarted


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=100, height=30, _environ={})


def plain() -> Console:
    return Console(file=io.StringIO(), width=100, _environ={})


def written(console: Console) -> str:
    return console.file.getvalue()  # type: ignore[attr-defined]


def started(spec: Any) -> TrialStarted:
    return TrialStarted(trial_id=spec.trial_id, task=spec.task_dir.name, sample=spec.sample)


def test_a_trial_waits_is_in_one_phase_and_ends(make: Any) -> None:
    spec = make.plan(("fact",), 1).specs[0]
    board = Board(total=1)
    assert board.line() == "0 of 1 ended, 0 running, 0 faulted attempts"
    board.add(started(spec))
    board.add(TrialPhase(trial_id=spec.trial_id, phase="act"))
    assert board.in_phase()["act"] == 1
    assert sum(board.in_phase().values()) == 1
    board.add(TrialEnded(record=make.record(spec)))
    assert sum(board.in_phase().values()) == 0
    assert board.line() == "1 of 1 ended, 0 running, 0 faulted attempts"


def test_a_phase_of_another_harness_is_shown_after_ours(make: Any) -> None:
    board = Board(total=1)
    board.add(TrialPhase(trial_id="x", phase="warp"))
    assert list(board.in_phase())[-1] == "warp"


def test_phases_that_few_runs_have_show_once_a_trial_was_in_them() -> None:
    board = Board(total=1)
    assert {"think", "idle", "regrade"}.isdisjoint(board.in_phase())
    board.add(TrialPhase(trial_id="x", phase="think"))
    assert board.in_phase()["think"] == 1
    board.add(TrialPhase(trial_id="x", phase="act"))
    assert board.in_phase()["think"] == 0


def test_plain_lines_name_each_ended_trial_and_its_fault(make: Any) -> None:
    plan = make.plan(("fact",), 2)
    died = make.attempt(reward=None, faults=(make.fault(ServerDisconnected("gone\x1b[2J\nPASS")),))
    console = plain()
    view = PlainView(console, 2, Clock())
    view.event(TrialEnded(record=make.record(plan.specs[0])))
    view.event(TrialEnded(record=make.record(plan.specs[1], died)))
    assert written(console).splitlines() == [
        "[1/2] fact__000 reward 1 in 4.4 s",
        "[2/2] fact__001 no reward in 4.4 s: server fault ServerDisconnected: gone [2J PASS",
    ]


def test_a_quiet_run_says_every_ten_seconds_that_it_is_alive(make: Any) -> None:
    console, clock = plain(), Clock()
    view = PlainView(console, 64, clock)
    gauges = RunGauges(live_boxes=12, loop_stall_ms=1.0, memory_mib=300.0)
    for step in range(25):
        clock.now = 100.0 + step
        view.event(gauges)
    line = "0 of 64 ended, 0 running, 12 boxes live, 0 faulted attempts"
    assert written(console).splitlines() == [line, line]


def test_the_view_follows_what_the_console_is() -> None:
    assert isinstance(view_for(terminal(), 1), LiveView)
    assert isinstance(view_for(plain(), 1), PlainView)


def test_live_rows_count_the_phases_and_keep_the_trials_to_look_at(make: Any) -> None:
    plan = make.plan(("fact",), 3)
    console, clock = terminal(), Clock()
    died = make.attempt(reward=None, faults=(make.fault(),))
    with LiveView(console, 3, clock) as view:
        for spec in plan.specs:
            view.event(started(spec))
        view.event(TrialEnded(record=make.record(plan.specs[0], died)))
        clock.now += 1
        view.event(TrialPhase(trial_id=plan.specs[1].trial_id, phase="grade"))
    shown = written(console)
    assert "1 of 3 ended, 2 running, 1 faulted attempts" in shown
    assert "sandbox fault SandboxDied: box 3 exited with 137" in shown


def test_live_rows_survive_hostile_text(make: Any) -> None:
    plan = make.plan(("fact",), 1)
    died = make.attempt(reward=None, faults=(make.fault(ServerDisconnected("[red]x[/]\x1b]0;")),))
    console = terminal()
    with LiveView(console, 1, Clock()) as view:
        view.event(TrialEnded(record=make.record(plan.specs[0], died)))
    assert "[red]x[/]" in written(console)
    assert "\x1b]0;" not in written(console)


def test_drawing_starts_no_thread() -> None:
    import threading

    async def inside() -> int:
        with LiveView(terminal(), 1):
            return threading.active_count()

    assert asyncio.run(inside()) == threading.active_count()
