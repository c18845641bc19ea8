# SPDX-License-Identifier: Apache-2.0
"""An earlier report, read and held to be comparable before a trial is started.

Contract: refused with one line where it cannot be read, is of another schema, or ran other tasks,
another agent, environment or load, or at no concurrency that this run has; so what differs
afterwards is not what was asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

import orjson

from envkit.fault import HarnessError
from envkit.preflight.changes import changes
from envkit.preflight.outcomes import Outcome, from_rows, load_of, outcomes
from envkit.preflight.text import one_line, percent
from envkit.preflight.types import SCHEMA, Change, Comparison, Plan, Report, Verdict

REPORT_NAME: Final = "report.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """An earlier run."""

    path: Path
    agent: str
    env: str
    load: Mapping[str, Any]
    rows: tuple[Outcome, ...]

    @property
    def tasks(self) -> frozenset[str]:
        return frozenset(row.task for row in self.rows)

    @property
    def concurrencies(self) -> frozenset[int]:
        return frozenset(row.concurrency for row in self.rows)


def read_baseline(path: Path) -> Baseline:
    """A ``report.json``, or the directory that holds one.

    Raises:
        HarnessError: it is none of ours, or of another schema.
    """
    file = path / REPORT_NAME if path.is_dir() else path
    data = _document(file)
    if (schema := data.get("schema")) != SCHEMA:
        raise HarnessError(f"--baseline {file}: schema is {schema!r}, this version reads {SCHEMA}")
    if not data.get("outcomes"):
        raise HarnessError(f"--baseline {file}: it lists no trials; run that preflight once more")
    try:
        rows = tuple(from_rows(data["outcomes"]))
        return Baseline(
            path=file, agent=data["agent"], env=data["env"], load=data["load"], rows=rows
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise HarnessError(
            f"--baseline {file}: {one_line(repr(error), 100)} is missing or no figure; "
            "run that preflight once more"
        ) from error


def check_comparable(baseline: Baseline, plan: Plan, concurrencies: Collection[int]) -> None:
    """Raises HarnessError where a comparison would not say what changed."""
    tasks = {spec.task_dir.name for spec in plan.specs}
    for what, was, wanted in (
        ("agent", baseline.agent, plan.agent),
        ("env", baseline.env, plan.env),
        ("load", baseline.load, load_of(plan)),
    ):
        if was != wanted:
            raise _other(baseline, f"it ran {what} {was}, this run {wanted}")
    if only := sorted(tasks ^ baseline.tasks):
        side = "it has no task" if only[0] in tasks else "only it has the task"
        raise _other(baseline, f"{side} {only[0]}")
    if not baseline.concurrencies & set(concurrencies):
        was, wanted = (_list(side) for side in (baseline.concurrencies, concurrencies))
        raise _other(baseline, f"it ran at concurrency {was}, this run at {wanted}")


def against(report: Report, baseline: Baseline, max_slowdown: float | None) -> Report:
    """The report with its comparison; a FAIL where it got worse by more than is allowed."""
    found = changes(baseline.rows, outcomes(report))
    compared = replace(report, comparison=Comparison(baseline=str(baseline.path), changes=found))
    lines = () if max_slowdown is None else breaches(found, max_slowdown)
    if not lines or report.verdict not in (Verdict.PASS, Verdict.FAIL):
        return compared
    before = report.why if report.verdict is Verdict.FAIL else ()
    return replace(compared, verdict=Verdict.FAIL, why=(*before, *lines))


def breaches(found: Collection[Change], max_slowdown: float) -> tuple[str, ...]:
    """What is worse beyond chance and, of times, CPU and memory, beyond what is allowed."""
    return tuple(
        f"worse than the baseline: {change_line(change)}{_allowed(change, max_slowdown)}"
        for change in found
        if change.verdict == "worse"
        and (change.ratio.value is None or change.ratio.value > 1 + max_slowdown)
    )


def change_line(change: Change) -> str:
    """``act 2.1 s to 2.9 s, 1.38 times (95 % 1.29 to 1.47), p < 0.001``."""
    ratio, p = change.ratio, change.p_adjusted
    likely = f"p {p:.3f}" if p >= 0.001 else "p < 0.001"
    times = (
        f", {ratio.value:.2f} times (95 % {ratio.low:.2f} to {ratio.high:.2f})"
        if ratio.value is not None
        else ""
    )
    name = one_line(change.measure, 80)
    return f"{name} {shown(change, change.before)} to {shown(change, change.now)}{times}, {likely}"


def shown(change: Change, value: float) -> str:
    """A value of one side with its unit."""
    if change.measure == "faults":
        return percent(value)
    return f"{value:.3g} {change.unit}" if change.unit else f"{value:.3f}"


def _allowed(change: Change, max_slowdown: float) -> str:
    return "" if change.ratio.value is None else f"; {percent(max_slowdown)} more is allowed"


def _other(baseline: Baseline, line: str) -> HarnessError:
    return HarnessError(
        f"--baseline {baseline.path}: {one_line(line, 200)}; compare like with like"
    )


def _list(levels: Collection[int]) -> str:
    return ", ".join(str(level) for level in sorted(levels))


def _document(path: Path) -> Mapping[str, Any]:
    try:
        data = orjson.loads(path.read_bytes())
    except OSError as error:
        raise HarnessError(
            f"--baseline {path}: {error.strerror}; name a {REPORT_NAME} or a report directory"
        ) from error
    except orjson.JSONDecodeError as error:
        raise HarnessError(
            f"--baseline {path}: is no JSON; name a {REPORT_NAME} or a report directory"
        ) from error
    return cast("Mapping[str, Any]", data) if isinstance(data, dict) else {}
