# SPDX-License-Identifier: Apache-2.0
"""A report for a terminal, short: figures, what a person acts on, and last the verdict and why.

Contract: text from outside (messages, task names, log lines) is printed as plain characters; it
can neither colour, move nor forge a line. However many failed, it fits on two screens; the report's
files hold all of it.
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
from envkit.preflight.types import Report, Rewards, Verdict

COLOUR: Final = {
    Verdict.PASS: "bold green",
    Verdict.FAIL: "bold red",
    Verdict.COULD_NOT_RUN: "bold red",
    Verdict.INTERRUPTED: "bold yellow",
}
FAILED_SHOWN: Final = 5
"""More would push what comes before off the screen."""
ROWS_SHOWN: Final = 10
"""Of faults and of what was left behind."""
WHY_SHOWN: Final = 240
"""Characters: two lines of a wide terminal."""
MESSAGE_SHOWN: Final = 60
"""Characters of an example's; the whole stands with its trial."""
STALL_MS: Final = 250.0
"""An event loop that stood still for so long is worth a word."""
NOT_LIVE: Final = "no control groups here: a box's CPU seconds count in the phase in which it ends"


class _Prose(Text):
    """A line of words of ours and figures, folded between words where it is too long.

    Any other is one line, however long: a command stays whole when it is copied, and text from
    outside never begins a line.
    """


def print_report(report: Report, console: Console) -> None:
    """Prints the whole report."""
    for part in _parts(report):
        console.print(part, soft_wrap=isinstance(part, Text) and not isinstance(part, _Prose))


def _parts(report: Report) -> Iterator[RenderableType]:
    if report.ramp:  # what all levels have together says little of any of them
        yield from ramp_views.text(report.ramp)
        yield Text()
    if report.phases and not report.ramp:
        yield _phases(report)
        if report.cpu_by_phase and not report.cpu_is_live:
            yield Text(NOT_LIVE, style="dim")
        yield Text()
    if report.attempts:
        yield from _figures(report)
        yield Text()
    if report.faults:
        yield _faults(report)
        yield from _rest(len(report.faults) - ROWS_SHOWN, "more class", "es")
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
    """Seconds by phase and, where they were read, CPU seconds a trial."""
    spent = report.cpu_by_phase
    table = columns("phase", "n", "p50", "p95", "p99", "max", *(["CPU s"] if spent else []))
    attempts = max(1, report.attempts)
    for name, row in report.phases.items():
        values = [seconds(value) for value in (row.p50, row.p95, row.p99, row.max)]
        cpu = [f"{spent.get(name, 0.0) / attempts:.3f}"] if spent else []
        table.add_row(Text(one_line(name, 30)), str(row.n), *values, *cpu)
    return table


def _figures(report: Report) -> Iterator[Text]:
    memory = f", {report.peak_memory_mib:,.0f} MiB" if report.peak_memory_mib is not None else ""
    yield _Prose(
        f"{count(report.trials, 'trial')}, {count(report.attempts, 'attempt')} "
        f"in {seconds(report.seconds)}: {report.peak_live} live at the peak{memory}, {_cpu(report)}"
    )
    stall = report.loop_stall_ms
    if stall and stall.max >= STALL_MS:
        yield _Prose(f"event loop stalled p99 {stall.p99:.0f} ms, max {stall.max:.0f} ms")
    for line in history(report):
        yield Text(one_line(line, 1000))
    yield _Prose(f"reward {reward_line(report.rewards, report.trials)}")
    if report.verdict is not Verdict.PASS:  # a pass says it below
        yield _Prose(f"faults {rate_line(report.fault_rate)}")


def _cpu(report: Report) -> str:
    """``0.72 CPU s a trial and 6.4 shared``."""
    a_trial = sum(report.cpu_s.values()) / max(1, report.attempts)
    shared = sum(report.shared_cpu_s.values())
    return f"{a_trial:.2f} CPU s a trial{f' and {shared:.1f} shared' if shared else ''}"


def history(report: Report) -> Iterator[str]:
    """What is to be known of a run that is not the only one, or not of one piece."""
    if report.resumed:
        times = "once" if report.resumed == 1 else f"{report.resumed} times"
        cut_off = count(report.cut_off, "attempt")
        yield f"resumed {times}; {cut_off} under way at an end of its process ran again"
    if report.plan and report.plan.rerun_of:
        yield f"only trials that failed in {report.plan.rerun_of}"
    if report.plan and report.plan.chaos:
        yield (
            f"faults were injected by {report.plan.chaos}, so a failed gate says little; what "
            "became of each: envkit preflight --score-chaos and this report's directory"
        )


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
    table = columns("fault", "count", "run again", left=("owner", "example"))
    for row in report.faults[:ROWS_SHOWN]:
        message = one_line(row.example_message, MESSAGE_SHOWN)
        example = f"{row.example_trial} in {row.example_phase}: {message}"
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
        yield Text.assemble(
            (one_line(trial.trial_id, 80), "bold"), f"  {one_line(trial.why, WHY_SHOWN)}"
        )
        yield Text.assemble(("  again ", "dim"), one_line(trial.reproduce, 1000))
    yield from _rest(len(report.failed) - FAILED_SHOWN, "more failed trial")
    if report.failed:
        yield Text()


def _quarantine(report: Report) -> Iterator[Text]:
    """One line a reason; what was seen is in the files."""
    by_reason: dict[str, list[str]] = {}
    for each in report.quarantine:
        for reason in each.reasons:
            by_reason.setdefault(reason.code, []).append(one_line(each.task, 80))
    for code, tasks in by_reason.items():
        more = f" and {len(tasks) - ROWS_SHOWN} more" if len(tasks) > ROWS_SHOWN else ""
        named = f"{', '.join(tasks[:ROWS_SHOWN])}{more}"
        yield Text(f"not to be trained on ({code})  {named}", style="yellow")
    if report.quarantine:
        yield Text()


def _leaks(report: Report) -> Iterator[Text]:
    for leak in report.leaks[:ROWS_SHOWN]:
        yield Text(f"left behind  {leak.kind}  {one_line(leak.what, 200)}", style="red")
    yield from _rest(len(report.leaks) - ROWS_SHOWN, "more left behind", "")


def _rest(n: int, what: str, plural: str = "s") -> Iterator[Text]:
    """What a list does not show."""
    if n > 0:
        yield Text(f"and {n} {what}{plural if n > 1 else ''}, in the report's files")


def _verdict(report: Report) -> Iterator[Text]:
    label = report.verdict.value.replace("_", " ")
    for first, line in enumerate(report.why):
        head = label if first == 0 else " " * len(label)
        yield Text.assemble((head, COLOUR[report.verdict]), f"  {one_line(line, 1000)}")
