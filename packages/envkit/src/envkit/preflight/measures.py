# SPDX-License-Identifier: Apache-2.0
"""What is made of a run beside its report: a comparison, an estimate.

Contract: everything that was asked for is read and checked before the first trial starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from envkit.fault import HarnessError
from envkit.preflight.baseline import Baseline, against, check_comparable, read_baseline
from envkit.preflight.estimate import Training, estimate, parse_training
from envkit.preflight.text import share
from envkit.preflight.types import Estimate, Level, Plan, Report
from envkit.trial.record import TrialRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """What was asked for, read."""

    baseline: Baseline | None = None
    max_slowdown: float | None = None
    """A fraction; None where a comparison breaches no gate."""
    training: Training | None = None

    def check(self, plan: Plan, levels: Sequence[Plan]) -> None:
        """Raises HarnessError where the baseline cannot be compared with what is planned."""
        if self.baseline is not None:
            at = [each.concurrency for each in levels or (plan,)]
            check_comparable(self.baseline, plan, at)

    def of(self, report: Report) -> Report:
        """The report with its comparison and its estimate."""
        if self.training is not None:
            report = replace(report, estimate=_estimate(report, self.training))
        if self.baseline is not None and report.attempts:
            report = against(report, self.baseline, self.max_slowdown)
        return report


def read_measures(
    *, baseline: Path | None, max_slowdown: str | None, training: str | None
) -> Measures:
    """The options as they were given.

    Raises:
        HarnessError: one of them cannot be read, or goes only with another.
    """
    if max_slowdown is not None and baseline is None:
        raise HarnessError(f"--max-slowdown {max_slowdown}: of what? add --baseline REPORT")
    return Measures(
        baseline=read_baseline(baseline) if baseline is not None else None,
        max_slowdown=None if max_slowdown is None else share("--max-slowdown", max_slowdown),
        training=None if training is None else parse_training(training),
    )


def _estimate(report: Report, training: Training) -> Estimate | None:
    """Of a ramp, at its knee: that is where one would train."""
    if report.plan is None:
        return None
    level = _best(report)
    if level is None:
        return estimate(report.records, training, report.plan.concurrency, report.plan.seed)
    return estimate(_of(level, report.records), training, level.concurrency, report.plan.seed)


def _best(report: Report) -> Level | None:
    levels = report.ramp.levels if report.ramp else ()
    knee = [level for level in levels if report.ramp and level.concurrency == report.ramp.knee]
    return next(iter([*knee, *levels[-1:]]), None)


def _of(level: Level, records: Sequence[TrialRecord]) -> list[TrialRecord]:
    ids = frozenset(level.trials)
    return [record for record in records if record.trial_id in ids]
