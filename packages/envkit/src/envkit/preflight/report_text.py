# SPDX-License-Identifier: Apache-2.0
"""A report for a terminal: the verdict first, then what a person acts on.

Contract: text from outside (messages, task names, log lines) is printed as plain characters; it
can neither colour, move nor forge a line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from envkit.preflight import change_views, estimate, ramp_views
from envkit.preflight.columns import columns
from envkit.preflight.gate import rate_line
from envkit.preflight.text import count, one_line, seconds
from envkit.preflight.types import FailedTrial, Report, Rewards, Verdict

COLOUR: Final = {
    Verdict.PASS: "bold green",
    Verdict.FAIL: "bold red",
    Verdict.COULD_NOT_RUN: "bold red",
    Verdict.INTERRUPTED: "bold yellow",
}
FAILED_SHOWN: Final = 10
"""More would push the verdict off the screen; the files hold all of them."""
NOT_LIVE: Final = "no control groups here: a box's CPU seconds count in the phase in which it ends"


def print_report(report: Report, console: Console) -> None:
    """Prints the whole report."""
    for part in _parts(report):
        console.print(part, soft_wrap=isinstance(part, Text))


def _parts(report: Report) -> Iterator[RenderableType]:
    if report.ramp:  # what all levels have together says little of any of them
        yield from ramp_views.text(report.ramp)
        yield Text()
    if report.phases and not report.ramp:
        yield _phases(report)
        yield Text()
    if report.cpu_by_phase and not report.ramp:
        yield _cpu(report)
        if not report.cpu_is_live:
            yield Text(NOT_LIVE, style="dim")
        yield Text()
    if report.attempts:
        yield from _figures(report)
        yield Text()
    if report.faults:
        yield _faults(report)
        yield Text()
    yield from _failed(report)
    if report.comparison:
        yield from change_views.text(report.comparison)
        yield Text()
    if report.estimate:
        yield from (Text(line) for line in estimate.lines(report.estimate))
        yield Text()
    if report.attempts:
        yield from _quarantine(report)
    yield from _leaks(report)
    yield from _verdict(report)


def _phases(report: Report) -> Table:
    table = columns("phase", *("n", "p50", "p95", "p99", "max"))
    for name, row in report.phases.items():
        values = (seconds(value) for value in (row.p50, row.p95, row.p99, row.max))
        table.add_row(Text(one_line(name, 30)), str(row.n), *values)
    return table


def _cpu(report: Report) -> Table:
    table = columns("CPU seconds", "a trial", "of the run")
    for kind, name, spent, a_trial in cpu_rows(report):
        shown = f"{a_trial:.3f}" if a_trial is not None else ""
        table.add_row(Text(one_line(f"{kind} {name}", 40)), shown, f"{spent:.1f}")
    return table


def cpu_rows(report: Report) -> list[tuple[str, str, float, float | None]]:
    """Kind, name, seconds of the run and seconds an attempt; shared work has none of the last."""
    by_phase = [("phase", name, spent) for name, spent in report.cpu_by_phase.items()]
    by_part = [("part", name, spent) for name, spent in report.cpu_s.items()]
    attempts = max(1, report.attempts)
    return [
        *((kind, name, spent, spent / attempts) for kind, name, spent in (*by_phase, *by_part)),
        *(("shared", name, spent, None) for name, spent in report.shared_cpu_s.items()),
    ]


def _figures(report: Report) -> Iterator[Text]:
    memory = f", {report.peak_memory_mib:,.0f} MiB" if report.peak_memory_mib is not None else ""
    stall = report.loop_stall_ms
    stalls = f", event loop stalled p99 {stall.p99:.0f} ms, max {stall.max:.0f} ms" if stall else ""
    cpu = sum(report.cpu_s.values())
    yield Text(
        f"{count(report.trials, 'trial')}, {count(report.attempts, 'attempt')} "
        f"in {seconds(report.seconds)}: {report.peak_live} live at the peak{memory}, "
        f"{cpu:.1f} CPU s{stalls}"
    )
    for line in history(report):
        yield Text(one_line(line, 1000))
    yield Text(f"reward {reward_line(report.rewards, report.trials)}")
    yield Text(f"faults {rate_line(report.fault_rate)}")


def history(report: Report) -> Iterator[str]:
    """What is to be known of a run that is not the only one, or not of one piece."""
    if report.resumed:
        times = "once" if report.resumed == 1 else f"{report.resumed} times"
        cut_off = count(report.cut_off, "attempt")
        yield f"resumed {times}; {cut_off} under way at an end of its process ran again"
    if report.plan and report.plan.rerun_of:
        yield f"only trials that failed in {report.plan.rerun_of}"


def reward_line(rewards: Rewards, trials: int) -> str:
    """The mean with its interval and where it would be if every invalid reward were 0 or 1."""
    if rewards.mean is None:
        return f"none valid of {trials}"
    return (
        f"mean {rewards.mean:.3f} over {rewards.n} valid of {trials} "
        f"(95 % {rewards.method} interval {rewards.low:.3f} to {rewards.high:.3f}; "
        f"all invalid as 0: {rewards.all_invalid_0:.3f}, as 1: {rewards.all_invalid_1:.3f})"
    )


def _faults(report: Report) -> Table:
    table = columns("fault", "count", "retried", left=("owner", "example"))
    for row in report.faults:
        example = f"{row.example_trial} in {row.example_phase}: {row.example_message}"
        table.add_row(
            Text(one_line(row.code, 40)),
            str(row.count),
            str(row.retried),
            row.owner,
            Text(one_line(example, 400)),
        )
    return table


def _failed(report: Report) -> Iterator[Text]:
    for trial in report.failed[:FAILED_SHOWN]:
        yield from _failed_trial(trial)
    rest = len(report.failed) - FAILED_SHOWN
    if rest > 0:
        yield Text(f"and {count(rest, 'more failed trial')}, in the report's files")
    if report.failed:
        yield Text()


def _failed_trial(trial: FailedTrial) -> Iterator[Text]:
    yield Text.assemble((one_line(trial.trial_id, 80), "bold"), f"  {one_line(trial.why, 400)}")
    yield Text.assemble(("  again ", "dim"), one_line(trial.reproduce, 1000))
    yield Text.assemble(("  files ", "dim"), one_line(trial.trial_dir, 400))


def _quarantine(report: Report) -> Iterator[Text]:
    """One line a task; its reasons by their names, what was seen is in the files."""
    for each in report.quarantine[:FAILED_SHOWN]:
        codes = ", ".join(reason.code for reason in each.reasons)
        yield Text(f"not to be trained on  {one_line(each.task, 80)}: {codes}", style="yellow")
    rest = len(report.quarantine) - FAILED_SHOWN
    if rest > 0:
        yield Text(f"and {count(rest, 'more task')} not to be trained on, in the report's files")
    if report.quarantine:
        yield Text()


def _leaks(report: Report) -> Iterator[Text]:
    for leak in report.leaks:
        yield Text(f"left behind  {leak.kind}  {one_line(leak.what, 200)}", style="red")


def _verdict(report: Report) -> Iterator[Text]:
    label = report.verdict.value.replace("_", " ")
    for first, line in enumerate(report.why):
        head = label if first == 0 else " " * len(label)
        yield Text.assemble((head, COLOUR[report.verdict]), f"  {one_line(line, 1000)}")
