# SPDX-License-Identifier: Apache-2.0
"""From what a launcher said to one judged ``Report``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from envkit.fault import EnvkitError
from envkit.preflight import stats
from envkit.preflight.by_task import task_rows
from envkit.preflight.course import course_of
from envkit.preflight.failed import failed_trials
from envkit.preflight.gate import Findings, breaches, count_faulted, summary
from envkit.preflight.operations import operations, slowest, tools
from envkit.preflight.quarantine import quarantine
from envkit.preflight.tables import cpu_by_part, cpu_by_phase, fault_rows, phase_quantiles
from envkit.preflight.tally import Ending, Tally, all_records, broken_record
from envkit.preflight.text import count, one_line
from envkit.preflight.types import Leftover, Plan, Report, Verdict
from envkit.trial.record import TrialRecord


def could_not_run(
    why: Sequence[str], plan: Plan | None = None, leaks: tuple[Leftover, ...] = ()
) -> Report:
    """The report of a run in which no trial came to an end of its own."""
    records = tuple(broken_record(task, plan) for task in plan.broken) if plan else ()
    return Report(
        verdict=Verdict.COULD_NOT_RUN,
        why=tuple(why),
        plan=plan,
        records=records,
        leaks=leaks,
        quarantine=quarantine(plan, records) if plan else (),
    )


def make_report(plan: Plan, tally: Tally, ending: Ending) -> Report:
    """Judges what was said."""
    if ending.broke is not None and not tally.records:
        return could_not_run([_reason(ending.broke)], plan, ending.leaks)
    records = all_records(plan, tally, ending)
    bad, attempts = count_faulted(records)
    found = Findings(
        plan=plan,
        records=records,
        fault_rate=stats.rate(bad, attempts),
        peak_live=tally.peak_live,
        leaks=ending.leaks,
        broke=_reason(ending.broke) if ending.broke else "",
        interrupted=ending.interrupted,
    )
    verdict, why = _judge(found, ending)
    report = Report(
        verdict=verdict,
        why=why,
        plan=plan,
        peak_live=tally.peak_live,
        seconds=ending.past.seconds + ending.seconds,
        shared_cpu_s=tally.shared_cpu_s,
        cpu_is_live=tally.cpu_is_live,
        peak_memory_mib=tally.peak_memory_mib,
        loop_stall_ms=stats.quantiles(tally.stalls_ms),
        leaks=ending.leaks,
        resumed=ending.past.resumed,
        cut_off=ending.past.cut_off,
        course=course_of(tally.track, records),
    )
    return counted(report, plan, records)


def counted(report: Report, plan: Plan, records: tuple[TrialRecord, ...]) -> Report:
    """The report with all that follows from its records."""
    bad, attempts = count_faulted(records)
    valid = [r.reward for r in records if r.reward_valid and r.reward is not None]
    done = operations(records)
    return replace(
        report,
        trials=len(records),
        attempts=attempts,
        rewards=stats.rewards(valid, len(records) - len(valid)),
        faults=fault_rows(records),
        fault_rate=stats.rate(bad, attempts),
        phases=phase_quantiles(records),
        cpu_s=cpu_by_part(records),
        cpu_by_phase=cpu_by_phase(records),
        failed=failed_trials(plan, records),
        records=records,
        quarantine=quarantine(plan, records),
        tasks=task_rows(records),
        tools=tools(done),
        slowest=slowest(done),
    )


def _judge(found: Findings, ending: Ending) -> tuple[Verdict, tuple[str, ...]]:
    breached = breaches(found)
    if ending.interrupted:
        ended, planned = len(found.records) - len(found.plan.broken), len(found.plan.specs)
        return Verdict.INTERRUPTED, (
            f"interrupted: {ended} of {count(planned, 'trial')} had ended",
            *breached,
        )
    return (Verdict.FAIL, breached) if breached else (Verdict.PASS, summary(found))


def _reason(error: Exception) -> str:
    """An error of ours says what to do; a foreign one needs its class to mean anything."""
    text = one_line(error, 500)
    return text if isinstance(error, EnvkitError) else f"{type(error).__name__}: {text}"
