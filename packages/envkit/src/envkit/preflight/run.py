# SPDX-License-Identifier: Apache-2.0
"""A preflight as one screen: checks, fit, run, gate, report.

Contract: always returns a report, however the run ends. A cancellation (Ctrl-C) is an ending like
any other: what ended is reported, what runs is killed within a bound. The checks were made with
the plan; nothing is started when no task passed them or when the trials do not fit.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, cast

from envkit.preflight.fit import crowding, fit
from envkit.preflight.host import Supply, cores, measure
from envkit.preflight.journal import Journal
from envkit.preflight.past import NOTHING, Past
from envkit.preflight.report import could_not_run, make_report
from envkit.preflight.tally import Ending, Tally
from envkit.preflight.types import (
    Event,
    Launcher,
    Leftover,
    Notice,
    Plan,
    Report,
    TrialSpec,
    View,
)
from envkit.sandbox.turns import at_work

CLEANUP_S: Final = 60.0
"""Killing 550 boxes takes 4 s; one that resists this long is a leak, and is reported as one."""
SETTLE_S: Final = 3.0
"""The kernel takes a dead box's mounts and cgroup away shortly after its last process."""


async def run(
    plan: Plan,
    launcher: Launcher,
    view: View,
    *,
    supplies: Sequence[Supply] | None = None,
    settle_s: float = SETTLE_S,
    past: Past = NOTHING,
    journal: Journal | None = None,
) -> Report:
    """Runs a plan and judges it; ``supplies`` stands for this machine where it is given.

    What is ``past`` is not run again, and is in the report; what happens goes to the ``journal``.
    """
    if not plan.specs:
        return could_not_run(_no_task(plan), plan)
    remaining = past.remaining(plan)
    at_once = min(plan.concurrency, len(remaining)) if past.resumed else plan.concurrency
    room = fit(at_once, supplies or measure(plan.out_dir))
    if not room.ok:
        return could_not_run([room.line()], plan)
    before = frozenset(launcher.leftovers())
    tally, began = Tally(), time.monotonic()
    tally.take_over(past)
    with view:
        view.notice(room.line())
        if crowd := crowding(_at_work(plan), cores()):
            view.notice(crowd)
        if journal and journal.resumable:
            view.notice(
                f"should it be killed: envkit {journal.command} --resume "
                f"{shlex.quote(journal.root)}"
            )
        for task in plan.broken:
            view.notice(f"{task.name}: not run: {'; '.join(task.problems)}")
        if past.resumed:
            view.notice(past.line(plan))
        hear = partial(_hear, tally, view, journal, began - past.seconds)
        broke, interrupted = await _drive(remaining, launcher, view, hear)
        seconds = time.monotonic() - began
        try:
            leaks = await _leaks(launcher, before, settle_s)
        except asyncio.CancelledError:
            _forget_cancellation()
            interrupted, leaks = True, tuple(sorted(_count(launcher, before)))
    ending = Ending(seconds=seconds, leaks=leaks, broke=broke, interrupted=interrupted, past=past)
    return make_report(plan, tally, ending)


async def _drive(
    specs: Sequence[TrialSpec], launcher: Launcher, view: View, hear: Callable[[Event], None]
) -> tuple[Exception | None, bool]:
    """Takes in every event; (what the launcher died of, whether we were interrupted)."""
    if not specs:
        return None, False

    async def pump() -> None:
        async with contextlib.aclosing(launcher.run(specs)) as events:
            async for event in events:
                hear(event)

    work = asyncio.create_task(pump(), name="preflight")
    interrupted = False
    try:
        await asyncio.wait({work})
    except asyncio.CancelledError:
        interrupted = True
        _forget_cancellation()
        view.notice("interrupted: stopping what runs; once more to leave at once")
        work.cancel()
        await asyncio.wait({work}, timeout=CLEANUP_S)
    return _error_of(work), interrupted


def _error_of(work: asyncio.Task[None]) -> Exception | None:
    """What the launcher died of, out of the groups that tasks wrap it in."""
    error = work.exception() if work.done() and not work.cancelled() else None
    if error is not None and not isinstance(error, Exception):
        raise error
    return _innermost(error) if error else None


def _innermost(error: Exception) -> Exception:
    if not isinstance(error, ExceptionGroup):
        return error
    return _innermost(cast("ExceptionGroup[Exception]", error).exceptions[0])


def _hear(tally: Tally, view: View, journal: Journal | None, began: float, event: Event) -> None:
    """Give an event its place in the account, the journal and on the screen."""
    tally.add(event, time.monotonic() - began)
    if journal and (complaint := journal.note(event)):
        view.notice(complaint)
    if isinstance(event, Notice):
        view.notice(event.line)
    else:
        view.event(event)


def _forget_cancellation() -> None:
    """The cancellation has been answered: the report is still to be written."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()


async def _leaks(
    launcher: Launcher, before: frozenset[Leftover], settle_s: float
) -> tuple[Leftover, ...]:
    """What is there now and was not before, once the kernel had time to take it away."""
    until = time.monotonic() + settle_s
    while True:
        left = _count(launcher, before)
        if not left or time.monotonic() >= until:
            return tuple(sorted(left))
        await asyncio.sleep(0.1)


def _count(launcher: Launcher, before: frozenset[Leftover]) -> frozenset[Leftover]:
    try:
        return frozenset(launcher.leftovers()) - before
    except Exception as error:  # the report outlives a count that fails, and says that it failed
        return frozenset({Leftover(kind="uncounted", what=f"{type(error).__name__}: {error}")})


def _at_work(plan: Plan) -> int:
    """How many trials compute at once, at most."""
    working = at_work(plan.turns, cores(), here=plan.env == "local")
    return min(plan.concurrency, working or plan.concurrency)


def _no_task(plan: Plan) -> list[str]:
    return [f"{task.name}: {problem}" for task in plan.broken for problem in task.problems]
