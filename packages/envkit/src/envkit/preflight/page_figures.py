# SPDX-License-Identifier: Apache-2.0
"""The sections of the page that say what was measured: tasks, time, operations, CPU seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from envkit.preflight import change_views, curves, estimate, ramp_views
from envkit.preflight.knee import knee_line
from envkit.preflight.markup import Child, Html, el
from envkit.preflight.page_parts import Section, bar, folded, note, table
from envkit.preflight.plots import legend, phase_class, phase_plot, reward_dots
from envkit.preflight.report_text import NOT_LIVE, reward_line
from envkit.preflight.text import count, percent, seconds
from envkit.preflight.types import Quantiles, Report

CHANCE_NOTE: Final = (
    "Medians, means of rewards, shares of attempts. Only what differs beyond chance, all measures "
    "taken together, is better or worse; a machine that was busier on that day differs as well."
)
CPU_NOTE: Final = (
    "The same seconds by phase and by part, as far as a control group or a process shows them; "
    "shared is what worked for all trials, importing included."
)
BAR_NOTE: Final = "Bars end at p50 (full), p95 and p99 (fainter); the line ends at the maximum."
LIVE_NOTE: Final = (
    "The dashed line is the concurrency asked for; the vertical line is where the first wave, all "
    "of it up with answering gateways, goes on."
)
MEMORY_NOTE: Final = (
    "Memory that this machine could give less of than before the run; what else runs there shows "
    "in it too."
)
SLOWEST_NOTE: Final = (
    "Phases, and in place of an act whose calls its agent wrote down those calls. Waits that were "
    "asked for, for the barrier and for a turn are left out; at most five are of one operation."
)


def tiles(report: Report) -> Html:
    """The run in ten figures."""
    stall, memory = report.loop_stall_ms, report.peak_memory_mib
    figures = {
        "trials": f"{report.trials:,}",
        "attempts": f"{report.attempts:,}",
        "live at the peak": f"{report.peak_live:,}",
        "wall clock": seconds(report.seconds),
        "mean reward": "n/a" if report.rewards.mean is None else f"{report.rewards.mean:.3f}",
        "fault rate": percent(report.fault_rate.value),
        "CPU of the trials": f"{sum(report.cpu_s.values()):,.1f} s",
        "CPU a trial": f"{sum(report.cpu_s.values()) / max(1, report.attempts):.2f} s",
        "peak memory": "n/a" if memory is None else f"{memory:,.0f} MiB",
        "loop stall p99 / max": f"{stall.p99:.0f} / {stall.max:.0f} ms" if stall else "n/a",
    }
    each = [el("div", el("b", value), el("span", name)) for name, value in figures.items()]
    return el("section", each, class_="tiles")


def asked_for(report: Report) -> Iterator[Section]:
    """What was asked for beside the run itself."""
    if report.ramp:
        levels = [ramp_views.cells(level) for level in report.ramp.levels]
        line = note(knee_line(report.ramp))
        rows = table(ramp_views.HEAD, levels, range(len(ramp_views.HEAD)))
        yield Section("Ramp", (ramp_views.plot(report.ramp), line, rows))
    if report.comparison:
        rows = [change_views.cells(change) for change in report.comparison.changes]
        remark = note(f"{report.comparison.baseline}. {CHANCE_NOTE}")
        body = table(change_views.HEAD, rows, range(1, 7))
        yield Section("Against the baseline", (body, remark))
    if report.estimate:
        lines = tuple(el("p", line) for line in estimate.lines(report.estimate))
        yield Section("The real run", lines)


def figures(report: Report) -> Iterator[Section]:
    """What every run has."""
    if report.tasks:
        mean = note(f"Reward {reward_line(report.rewards, report.trials)}.")
        yield Section("Tasks", (_tasks(report), mean))
    yield from _over_time(report)
    if report.phases:
        quantiles = folded("as figures", _phases(report))
        yield Section("Seconds by phase", (phase_plot(report.phases), note(BAR_NOTE), quantiles))
    if report.slowest:
        yield Section("Slowest operations", (_slowest(report), note(SLOWEST_NOTE)))
    if report.tools:
        yield Section("Tool calls", (_tools(report),))
    if report.cpu_by_phase:
        remark = CPU_NOTE if report.cpu_is_live else f"{CPU_NOTE} There are {NOT_LIVE}."
        yield Section("CPU seconds", (_cpu(report), note(remark)))


def _over_time(report: Report) -> Iterator[Section]:
    course, scale = report.course, curves.time_scale(report.course)
    if scale is None:
        return
    if course.readings:
        asked = report.plan.concurrency if report.plan else report.peak_live
        live, memory = curves.live_curve(course, scale, asked), curves.memory_curve(course, scale)
        body = (live, note(LIVE_NOTE), memory, note(MEMORY_NOTE))
        yield Section("Concurrency and memory over time", body)
    if course.lanes:
        shown = len(course.lanes)
        left = course.left_out
        remark = f"Below, a lane a trial, in the order they began{LANES_LEFT if left else ''}."
        parts = (
            legend(curves.phases_of(course.lanes)),
            curves.bands(course, scale),
            note(remark.format(shown=shown, all=shown + left)),
            curves.lanes(course, scale),
        )
        yield Section("Phases over time", parts)


LANES_LEFT: Final = ": {shown} of {all}, evenly taken"


def _tasks(report: Report) -> Html:
    twice = any(row.graded_twice for row in report.tasks)
    rows: list[list[Child]] = []
    for row in report.tasks:
        valid = sum(n for _, n in row.rewards)
        mean = sum(reward * n for reward, n in row.rewards) / valid if valid else None
        cells: list[Child] = [
            row.task,
            reward_dots(row),
            "n/a" if mean is None else f"{mean:.3f}",
            row.trials,
            row.trials - valid,
            row.faulted,
            *_spread(row.seconds),
        ]
        again = f"{count(row.graded_twice, 'trial')}, {row.graded_differently} differently"
        rows.append([*cells, again] if twice else cells)
    head = ["task", "rewards, 0 to 1", "mean", "trials", "not valid", "faulted",
            "p50", "p95", "max", *(["graded twice"] if twice else [])]  # fmt: skip
    return table(head, rows, range(2, 9))


def _spread(row: Quantiles | None) -> tuple[str, str, str]:
    return (seconds(row.p50), seconds(row.p95), seconds(row.max)) if row else ("", "", "")


def _phases(report: Report) -> Html:
    rows: list[list[Child]] = [
        [name, row.n, *(seconds(v) for v in (row.p50, row.p95, row.p99, row.max))]
        for name, row in report.phases.items()
    ]
    return table(["phase", "n", "p50", "p95", "p99", "max"], rows, range(1, 6))


def _slowest(report: Report) -> Html:
    most = max(each.seconds for each in report.slowest)
    rows: list[list[Child]] = [
        [
            el("code", each.name),
            "tool call" if each.is_call else "phase",
            bar(each.seconds, most, "" if each.is_call else phase_class(each.name)),
            seconds(each.seconds),
            each.trial if each.attempt == 1 else f"{each.trial}, attempt {each.attempt}",
            "" if each.ok else "failed",
        ]
        for each in report.slowest
    ]
    return table(["operation", "", "", "took", "trial", ""], rows, (3,))


def _tools(report: Report) -> Html:
    rows: list[list[Child]] = [
        [
            el("code", row.tool),
            row.seconds.n,
            row.failed,
            *(seconds(v) for v in (row.seconds.p50, row.seconds.p95, row.seconds.p99)),
            seconds(row.seconds.max),
        ]
        for row in report.tools
    ]
    return table(["tool", "calls", "failed", "p50", "p95", "p99", "max"], rows, range(1, 7))


def _cpu(report: Report) -> Html:
    all_rows = _cpu_rows(report)
    most = max((spent for _, _, spent, _ in all_rows), default=0.0)
    rows: list[list[Child]] = [
        [
            kind,
            name,
            bar(spent, most, phase_class(name) if kind == "phase" else ""),
            "" if a_trial is None else f"{a_trial:.3f}",
            f"{spent:.1f}",
        ]
        for kind, name, spent, a_trial in all_rows
    ]
    return table(["by", "name", "", "a trial", "of the run"], rows, (3, 4))


def _cpu_rows(report: Report) -> list[tuple[str, str, float, float | None]]:
    """Kind, name, seconds of the run and seconds an attempt; shared work has none of the last."""
    by_phase = [("phase", name, spent) for name, spent in report.cpu_by_phase.items()]
    by_part = [("part", name, spent) for name, spent in report.cpu_s.items()]
    attempts = max(1, report.attempts)
    return [
        *((kind, name, spent, spent / attempts) for kind, name, spent in (*by_phase, *by_part)),
        *(("shared", name, spent, None) for name, spent in report.shared_cpu_s.items()),
    ]
