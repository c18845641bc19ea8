# SPDX-License-Identifier: Apache-2.0
"""The tasks that must not be trained on, and why: found, written for trainers, read by them.

Contract: pure over a run's records; tasks and reasons come in a fixed order, so that two equal
runs write the same bytes. A task is listed for what is shown to be its own: its faults count
once the lower end of their 95 % interval is above the rate allowed, because one box that died in
a hundred says nothing about the task in it. ``read`` takes only the schema that it knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, cast

import orjson

from envkit.fault import HarnessError, NotIsolated
from envkit.preflight.gate import EXPECTED, count_faulted, wrong_reward
from envkit.preflight.soundness import differ
from envkit.preflight.stats import rate
from envkit.preflight.text import count, one_line, percent
from envkit.preflight.types import Plan, Quarantined, Reason, Report, Verdict
from envkit.trial.record import Grade, TrialRecord

SCHEMA: Final = "envkit.quarantine/1"
NAME: Final = "quarantine.json"
"""The file's name in a report directory."""

Rule = Callable[[Plan, Sequence[TrialRecord]], Reason | None]
"""Looks at one task's records."""


def quarantine(plan: Plan, records: Sequence[TrialRecord]) -> tuple[Quarantined, ...]:
    """Every task with a reason against it, by name."""
    by_task: dict[str, list[TrialRecord]] = {}
    for record in records:
        by_task.setdefault(record.task, []).append(record)
    broken = {task.name: task.problems for task in plan.broken}
    found = {
        task: (_static(broken[task]),) if task in broken else tuple(_reasons(plan, by_task[task]))
        for task in sorted({*by_task, *broken})
    }
    return tuple(Quarantined(task=t, reasons=reasons) for t, reasons in found.items() if reasons)


def to_bytes(report: Report) -> bytes:
    """The published form: a JSON object of ``schema``, what was run, and ``tasks``."""
    plan, ended = report.plan, report.verdict in (Verdict.PASS, Verdict.FAIL)
    document = {
        "schema": SCHEMA,
        "agent": plan.agent if plan else None,
        "complete": ended and plan is not None and plan.rerun_of is None,
        "tasks": [asdict(task) for task in report.quarantine],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"


def read(path: Path) -> tuple[Quarantined, ...]:
    """The tasks that a trainer must leave out.

    Raises:
        HarnessError: the file cannot be read, is of another schema, or is malformed.
    """
    try:
        document = cast("dict[str, Any]", orjson.loads(path.read_bytes()))
        if (schema := document.get("schema")) != SCHEMA:
            raise HarnessError(f"{path}: schema is {schema!r}, this version reads {SCHEMA!r}")
        return tuple(_task(each) for each in document["tasks"])
    except OSError as error:
        raise HarnessError(f"{path}: {error.strerror}; name a {NAME} of a report") from error
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError) as error:
        raise HarnessError(f"{path}: is no quarantine list; name a {NAME} of a report") from error


def _task(data: Mapping[str, Any]) -> Quarantined:
    reasons = tuple(
        Reason(code=each["code"], message=each["message"], trials=tuple(each["trials"]))
        for each in data["reasons"]
    )
    return Quarantined(task=data["task"], reasons=reasons)


def _reasons(plan: Plan, records: Sequence[TrialRecord]) -> Iterator[Reason]:
    for rule in RULES:
        if reason := rule(plan, records):
            yield reason


def _static(problems: Sequence[str]) -> Reason:
    return Reason(code="static_checks", message="; ".join(one_line(p, 500) for p in problems))


def _wrong_reward(_plan: Plan, records: Sequence[TrialRecord]) -> Reason | None:
    """Its oracle does not earn all, or doing nothing earns something."""
    wrong = [record for record in records if wrong_reward(record)]
    if not wrong:
        return None
    agent = wrong[0].agent
    earned = ", ".join(f"{value:g}" for value in sorted({r.reward or 0.0 for r in wrong}))
    line = f"{agent} must earn {EXPECTED[agent]:g} and earned {earned} in {_of(wrong, records)}"
    return Reason(code="wrong_reward", message=line, trials=_ids(wrong))


def _reward_range(_plan: Plan, records: Sequence[TrialRecord]) -> Reason | None:
    off = [r for r in records if r.reward is not None and not 0 <= r.reward <= 1]
    if not off:
        return None
    line = f"a reward outside 0 to 1 in {_of(off, records)}"
    return Reason(code="reward_range", message=line, trials=_ids(off))


def _faults(plan: Plan, records: Sequence[TrialRecord]) -> Reason | None:
    bad, attempts = count_faulted(records)
    low = rate(bad, attempts).low
    if low is None or low <= plan.max_fault_rate:
        return None
    shown = [record for record in records if count_faulted([record])[0]]
    codes = sorted(
        {f"{f.owner.value} {f.code}" for r in shown for a in r.attempts for f in a.faults}
    )
    named = f": {one_line(', '.join(codes), 300)}" if codes else ""
    allowed = f"{percent(plan.max_fault_rate)} allowed"
    line = f"{bad} of {count(attempts, 'attempt')} faulted, {allowed}{named}"
    return Reason(code="faults", message=line, trials=_ids(shown))


def _flaky_verifier(_plan: Plan, records: Sequence[TrialRecord]) -> Reason | None:
    """The same files were paid differently when they were graded again."""
    paid = {
        record.trial_id: _paid(attempt.grades)
        for record in records
        for attempt in record.attempts
        if differ(attempt.grades)
    }
    if not paid:
        return None
    differing = [record for record in records if record.trial_id in paid]
    each = one_line("; ".join(sorted(set(paid.values()))), 300)
    line = f"the same files were paid {each} in {_of(differing, records)}"
    return Reason(code="flaky_verifier", message=line, trials=_ids(differing))


def _paid(grades: Sequence[Grade]) -> str:
    """Every named reward that differs: ``total 1 then 0``."""
    judged = [grade.rewards for grade in grades if grade.fault is None]
    named = {name: [rewards.get(name) for rewards in judged] for name in sorted(judged[0])}
    return ", ".join(
        f"{name} {' then '.join('none' if v is None else f'{v:g}' for v in values)}"
        for name, values in named.items()
        if len(set(values)) > 1
    )


def _interference(_plan: Plan, records: Sequence[TrialRecord]) -> Reason | None:
    """Its boxes showed what another trial made."""
    name = NotIsolated.__name__
    seen = [r for r in records if any(f.code == name for a in r.attempts for f in a.faults)]
    if not seen:
        return None
    line = f"what another trial made was seen in {_of(seen, records)}"
    return Reason(code="interference", message=line, trials=_ids(seen))


def _of(some: Sequence[TrialRecord], records: Sequence[TrialRecord]) -> str:
    return f"{len(some)} of {count(len(records), 'trial')}"


def _ids(records: Sequence[TrialRecord]) -> tuple[str, ...]:
    return tuple(sorted(record.trial_id for record in records))


RULES: Final[tuple[Rule, ...]] = (
    _wrong_reward,
    _reward_range,
    _flaky_verifier,
    _interference,
    _faults,
)
"""In the order a person should look at them."""
