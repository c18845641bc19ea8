# SPDX-License-Identifier: Apache-2.0
"""From which concurrency on more of it gives no more throughput.

Contract: pure. The knee is the lowest level whose throughput is at least 90 % of the best level's:
a rule that does not depend on how far apart the levels are, and that the noise of one level moves
little. Throughput counts trials that earned a valid reward, over the wall clock from the first
start to the last end of the level, its barrier included, so with one wave of trials it is low
rather than high.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Final

from envkit.preflight import stats
from envkit.preflight.slots import cpu_s, slot_s, span_s
from envkit.preflight.text import count, percent, seconds
from envkit.preflight.types import Difference, Level, Ramp, Report

NEARLY: Final = 0.90
"""Of the best throughput. Two runs of the same level differ by a few percent."""


def level_of(report: Report, concurrency: int) -> Level:
    """The figures of one level out of its own report."""
    records = list(report.records)
    took, valid = span_s(records), sum(record.reward_valid for record in records)
    return Level(
        concurrency=concurrency,
        trials=tuple(record.trial_id for record in records),
        valid=valid,
        seconds=took,
        per_s=valid / took if took > 0 else 0.0,
        trial_s=stats.quantiles([slot_s(r) for r in records if r.reward_valid]),
        phases=report.phases,
        fault_rate=report.fault_rate,
        mean_reward=report.rewards.mean,
        cpu_s=fmean(cpu_s(record) for record in records) if records else 0.0,
        peak_memory_mib=report.peak_memory_mib,
        peak_live=report.peak_live,
    )


def ramp_of(levels: Sequence[Level], differences: tuple[Difference, ...] = ()) -> Ramp:
    """The levels in order, and their knee."""
    ordered = tuple(sorted(levels, key=lambda level: level.concurrency))
    best = max((level.per_s for level in ordered), default=0.0)
    if len(ordered) < 2 or best <= 0:
        return Ramp(levels=ordered, knee=None, grows=False, differences=differences)
    knee = next(level for level in ordered if level.per_s >= NEARLY * best)
    return Ramp(
        levels=ordered,
        knee=knee.concurrency,
        grows=knee is ordered[-1],
        differences=differences,
    )


def knee_line(ramp: Ramp) -> str:
    """One line: where it is, what holds there."""
    knee = next((level for level in ramp.levels if level.concurrency == ramp.knee), None)
    if knee is None:
        return f"no knee: {count(len(ramp.levels), 'level')} measured, two are needed"
    p95 = f", p95 {seconds(knee.trial_s.p95)} a trial" if knee.trial_s else ""
    there = f"{knee.per_s:.2f} trials/s{p95}, faults {percent(knee.fault_rate.value)}"
    if ramp.grows:
        return f"throughput still grows at {knee.concurrency}: {there}"
    return f"knee at {knee.concurrency}: {there}; more gives at most a ninth more"
