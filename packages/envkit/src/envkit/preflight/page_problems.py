# SPDX-License-Identifier: Apache-2.0
"""The sections of the page that one acts on: failed trials, faults, tasks to leave out, leaks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from envkit.preflight.gate import rate_line
from envkit.preflight.markup import Child, Html, el
from envkit.preflight.page_parts import Section, bar, note, table
from envkit.preflight.text import count
from envkit.preflight.types import FailedTrial, Report

OPEN_UP_TO: Final = 3
"""Failed trials that are shown without a click."""
SHOWN: Final = 200
"""A page of thousands is read by nobody; the JSON has all."""


def problems(report: Report) -> Iterator[Section]:
    """What is there of them, the most pressing first."""
    if report.faults:
        rate = note(f"Faulted attempts: {rate_line(report.fault_rate)}.")
        yield Section("Faults by owner and class", (_faults(report), rate))
    if report.failed:
        yield Section("Failed trials", tuple(_failed(report)))
    if report.quarantine:
        rows = [
            [each.task, el("code", reason.code), reason.message]
            for each in report.quarantine
            for reason in each.reasons
        ]
        head = ["task", "reason", "what was seen"]
        yield Section("Not to be trained on", (table(head, rows),))
    if report.leaks:
        rows = [[leak.kind, el("code", leak.what)] for leak in report.leaks]
        yield Section("Left behind", (table(["kind", "what"], rows),))


def _faults(report: Report) -> Html:
    most = max(row.count for row in report.faults)
    rows: list[list[Child]] = [
        [
            row.owner,
            el("code", row.code),
            bar(row.count, most, "bad"),
            row.count,
            row.retried,
            f"{row.example_trial} in {row.example_phase}: {row.example_message}",
        ]
        for row in sorted(report.faults, key=lambda row: (row.owner, -row.count))
    ]
    return table(["owner", "class", "", "count", "run again", "example"], rows, (3, 4))


def _failed(report: Report) -> Iterator[Html]:
    few = len(report.failed) <= OPEN_UP_TO
    yield from (_trial(trial, few) for trial in report.failed[:SHOWN])
    rest = len(report.failed) - SHOWN
    if rest > 0:
        yield note(f"And {count(rest, 'more failed trial')}, in report.json.")


def _trial(trial: FailedTrial, is_open: bool) -> Html:
    summary = el("summary", el("b", trial.trial_id), f" {trial.why}")
    again = el("p", "Run it again: ", el("code", trial.reproduce))
    where = el("p", "Files: ", el("code", str(trial.trial_dir)))
    log = el("pre", "\n".join(trial.log_tail)) if trial.log_tail else note(NO_LOG)
    unfolded = {"open": ""} if is_open else {}
    return el("details", summary, again, where, log, **unfolded)


NO_LOG: Final = "No log stands here; look among its files."
