# SPDX-License-Identifier: Apache-2.0
"""The same tasks at one concurrency after the other, as one run.

Contract: one plan holds the trials of all levels, each with an id of its own, so that every trial
of a ramp can be found, judged and run again as any other. Levels run from the lowest to the
highest; the highest must fit before the first one starts. An interruption keeps what was measured:
the levels that ended are levels, the trials that ended are records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from envkit.preflight.course import joined
from envkit.preflight.fit import fit
from envkit.preflight.gate import EXPECTED, Findings, breaches, rate_line
from envkit.preflight.host import Supply, measure
from envkit.preflight.knee import knee_line, level_of, ramp_of
from envkit.preflight.report import could_not_run, counted
from envkit.preflight.run import SETTLE_S, run
from envkit.preflight.same_rewards import difference_line, differences
from envkit.preflight.tally import broken_record
from envkit.preflight.text import count
from envkit.preflight.types import (
    Difference,
    Interval,
    Launcher,
    Plan,
    Ramp,
    Report,
    Verdict,
    View,
)

OURSELVES: Final = "runner"
"""The part of the shared CPU seconds that is this process."""


async def run_ramp(
    plan: Plan,
    plans: Sequence[Plan],
    launcher_of: Callable[[Plan], Launcher],
    view_of: Callable[[Plan], View],
    *,
    supplies: Sequence[Supply] | None = None,
    settle_s: float = SETTLE_S,
) -> Report:
    """Runs every level and judges them together; ``plan`` is `levels.whole` of ``plans``."""
    room = fit(plans[-1].concurrency, supplies or measure(plan.out_dir))
    if not room.ok:
        return could_not_run([f"--ramp: {room.line('--ramp up to')}"], plan)
    reports: list[Report] = []
    for level in plans:
        level.out_dir.mkdir(parents=True, exist_ok=True)
        work = run(level, launcher_of(level), view_of(level), supplies=supplies, settle_s=settle_s)
        reports.append(await work)
        if reports[-1].verdict in (Verdict.INTERRUPTED, Verdict.COULD_NOT_RUN):
            break
    return together(plan, reports)


def together(plan: Plan, reports: Sequence[Report]) -> Report:
    """The report of the whole ramp; the last of ``reports`` may be cut short."""
    first = reports[0]
    if first.verdict is Verdict.COULD_NOT_RUN:
        return could_not_run(first.why, plan, first.leaks)
    broken = tuple(broken_record(task, plan) for task in plan.broken)
    ran = tuple(record for report in reports for record in report.records)
    ended = {
        report.plan.concurrency: report
        for report in reports
        if report.plan and report.verdict in (Verdict.PASS, Verdict.FAIL)
    }
    levels = [level_of(report, at) for at, report in ended.items()]
    ramp = ramp_of(levels, _differences(plan, list(ended.values())))
    breached = (*_broken(plan), *_of_levels(reports), *_differ(ramp))
    verdict = _verdict(reports, breached)
    report = counted(replace(_gauged(reports), plan=plan, ramp=ramp), plan, (*ran, *broken))
    why = breached or (
        _passed(plan, ramp, report.trials),
        f"fault rate {rate_line(report.fault_rate)}",
    )
    return replace(report, verdict=verdict, why=(*why, knee_line(ramp)))


def _gauged(reports: Sequence[Report]) -> Report:
    """What no record tells, over all levels."""
    memory = [r.peak_memory_mib for r in reports if r.peak_memory_mib is not None]
    stalls = [r.loop_stall_ms for r in reports if r.loop_stall_ms]
    return replace(
        reports[-1],
        peak_live=max(report.peak_live for report in reports),
        seconds=sum(report.seconds for report in reports),
        peak_memory_mib=max(memory, default=None),
        loop_stall_ms=max(stalls, key=lambda row: row.max, default=None),
        shared_cpu_s=_shared([report.shared_cpu_s for report in reports]),
        cpu_is_live=all(report.cpu_is_live for report in reports),
        leaks=tuple(leak for report in reports for leak in report.leaks),
        course=joined([(report.seconds, report.course) for report in reports]),
    )


def _shared(each: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """This process counts on through all levels; what a level starts begins at nothing."""
    total: dict[str, float] = {}
    for level in each:
        for part, seconds in level.items():
            total[part] = seconds if part == OURSELVES else total.get(part, 0.0) + seconds
    return total


def _broken(plan: Plan) -> tuple[str, ...]:
    """The line about tasks that no level ran."""
    nothing = Interval(value=None, low=None, high=None)
    alone = replace(plan, specs=())
    return breaches(Findings(plan=alone, records=(), fault_rate=nothing, peak_live=0, leaks=()))


def _of_levels(reports: Sequence[Report]) -> Iterator[str]:
    for report in reports:
        if report.plan and report.verdict is not Verdict.PASS:
            yield from (f"at {report.plan.concurrency}: {line}" for line in report.why)


def _verdict(reports: Sequence[Report], breached: Sequence[str]) -> Verdict:
    """A ramp of which one level could not be run has not passed."""
    if reports[-1].verdict is Verdict.INTERRUPTED:
        return Verdict.INTERRUPTED
    return Verdict.FAIL if breached else Verdict.PASS


def _differences(plan: Plan, ended: Sequence[Report]) -> tuple[Difference, ...]:
    """Of the highest level from the lowest; a model's rewards differ by themselves."""
    if len(ended) < 2 or plan.agent not in EXPECTED:
        return ()
    return differences(ended[0].records, ended[-1].records)


def _differ(ramp: Ramp) -> tuple[str, ...]:
    if not ramp.differences:
        return ()
    few, many = (f"at {ramp.levels[end].concurrency}" for end in (0, -1))
    return (difference_line(ramp.differences, few, many),)


def _passed(plan: Plan, ramp: Ramp, trials: int) -> str:
    at = ", ".join(str(level.concurrency) for level in ramp.levels)
    same = " with the same rewards at each end" if plan.agent in EXPECTED else ""
    return f"{count(trials, 'trial')} at {at}{same}; every level passed"
