# SPDX-License-Identifier: Apache-2.0
"""A report as JSON.

Contract: the keys of ``envkit.preflight/1`` keep their meaning; further ones may be added.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from envkit.preflight import course_json
from envkit.preflight.outcomes import load_of, outcomes, to_rows
from envkit.preflight.soundness import checks
from envkit.preflight.types import (
    LEAK_NAMES,
    SCHEMA,
    FailedTrial,
    FaultRow,
    Plan,
    Ramp,
    Report,
    Rewards,
)


def to_json(report: Report) -> dict[str, Any]:
    """The published form: the keys of ``schema`` are stable, further ones may be added."""
    stall = report.loop_stall_ms
    return {
        "schema": SCHEMA,
        "verdict": report.verdict.value,
        "why": list(report.why),
        "trials": report.trials,
        "attempts": report.attempts,
        "peak_live": report.peak_live,
        "seconds": report.seconds,
        "rewards": _rewards_json(report.rewards),
        "rewards_interval": report.rewards.method,
        "faults": {name: _fault_json(row) for name, row in _named(report.faults)},
        "fault_rate": asdict(report.fault_rate),
        "phases": {name: asdict(row) for name, row in report.phases.items()},
        "cpu_s": sum(report.cpu_s.values()),
        "cpu_s_by_part": dict(report.cpu_s),
        "cpu_s_by_phase": dict(report.cpu_by_phase),
        "cpu_s_shared": dict(report.shared_cpu_s),
        "cpu_is_live": report.cpu_is_live,
        "peak_memory_mib": report.peak_memory_mib,
        "loop_stall_ms": asdict(stall) if stall else {"n": 0, "p99": None, "max": None},
        "leaks": {
            name: sum(leak.kind == kind for leak in report.leaks)
            for kind, name in LEAK_NAMES.items()
        },
        "leaked": [asdict(leak) for leak in report.leaks],
        "failed": [_failed_json(trial) for trial in report.failed],
        "resumed": {"times": report.resumed, "attempts_cut_off": report.cut_off},
        "quarantine": [asdict(task) for task in report.quarantine],
        "ramp": _ramp_json(report.ramp) if report.ramp else None,
        "comparison": asdict(report.comparison) if report.comparison else None,
        "estimate": asdict(report.estimate) if report.estimate else None,
        "checks": checks(report.records),
        "tasks": [asdict(row) for row in report.tasks],
        "tools": [asdict(row) for row in report.tools],
        "slowest": [asdict(operation) for operation in report.slowest],
        "course": course_json.to_json(report.course),
        "outcomes": to_rows(outcomes(report)),
        **_plan_json(report.plan),
    }


def _ramp_json(ramp: Ramp) -> dict[str, Any]:
    levels = [
        {**asdict(level), "trials": len(level.trials), "per_hour": 3600 * level.per_s}
        for level in ramp.levels
    ]
    return {"levels": levels, "knee": ramp.knee, "grows": ramp.grows}


def _rewards_json(rewards: Rewards) -> dict[str, Any]:
    return {name: value for name, value in asdict(rewards).items() if name != "method"}


def _named(rows: Sequence[FaultRow]) -> Iterator[tuple[str, FaultRow]]:
    """Each class by its name; where two owners share one, the rarer says its owner as well."""
    seen: set[str] = set()
    for row in rows:
        yield f"{row.code} ({row.owner})" if row.code in seen else row.code, row
        seen.add(row.code)


def _fault_json(row: FaultRow) -> dict[str, Any]:
    return {
        "owner": row.owner,
        "count": row.count,
        "retried": row.retried,
        "example": {
            "trial": row.example_trial,
            "attempt": row.example_attempt,
            "phase": row.example_phase,
            "message": row.example_message,
        },
    }


def _failed_json(trial: FailedTrial) -> dict[str, Any]:
    return {
        "trial": trial.trial_id,
        "task": trial.task,
        "why": trial.why,
        "reproduce": trial.reproduce,
        "trial_dir": str(trial.trial_dir),
        "log_tail": list(trial.log_tail),
    }


def _plan_json(plan: Plan | None) -> dict[str, Any]:
    if plan is None:
        return {}
    return {
        "source": str(plan.source),
        "agent": plan.agent,
        "env": plan.env,
        "concurrency": plan.concurrency,
        "seed": plan.seed,
        "load": load_of(plan),
        "max_fault_rate": plan.max_fault_rate,
        "run_token": plan.run_token,
        "rerun_of": str(plan.rerun_of) if plan.rerun_of else None,
        "chaos": str(plan.chaos) if plan.chaos else None,
        "broken": [
            {"task": task.name, "dir": str(task.dir), "problems": list(task.problems)}
            for task in plan.broken
        ],
    }
