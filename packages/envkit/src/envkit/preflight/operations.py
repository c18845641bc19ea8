# SPDX-License-Identifier: Apache-2.0
"""What took long: the slowest phases and tool calls of a run, and each tool's times.

Contract: phases are read from the records, calls from what the agents wrote beside them
(``agent/calls.jsonl``). That file may come out of a box: it is read within a bound, without
following links, and a line that is no call is passed over.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

import orjson

from envkit.preflight import stats
from envkit.preflight.logs import regular_file
from envkit.preflight.text import one_line
from envkit.preflight.types import Operation, ToolRow
from envkit.trial.record import Attempt, TrialRecord
from envkit.trial.request import attempt_name

SLOWEST: Final = 15
OF_ONE_NAME: Final = 5
"""Of these: with many trials the slowest phase would fill the list."""
ASKED_FOR: Final = frozenset({"hold", "turn", "idle", "think"})
"""Phases that are waits; how long they are says nothing of what is slow."""
ACT: Final = "act"
CALLS: Final = "agent/calls.jsonl"
CALLS_BYTES: Final = 1 << 20


def operations(records: Iterable[TrialRecord]) -> list[Operation]:
    """Every phase, and in place of an act whose calls are known every call."""
    return [
        operation
        for record in records
        for attempt in record.attempts
        for operation in _of_attempt(record, attempt)
    ]


def slowest(some: Iterable[Operation]) -> tuple[Operation, ...]:
    """The few that took longest, no more of one name than a handful."""
    ordered = sorted(some, key=lambda each: (-each.seconds, each.trial, each.attempt, each.name))
    seen: Counter[str] = Counter()
    found: list[Operation] = []
    for each in ordered:
        seen[each.name] += 1
        if seen[each.name] <= OF_ONE_NAME:
            found.append(each)
    return tuple(found[:SLOWEST])


def tools(some: Iterable[Operation]) -> tuple[ToolRow, ...]:
    """Each tool that was called, those that took the most time of the run first."""
    calls: dict[str, list[Operation]] = {}
    for each in some:
        if each.is_call:
            calls.setdefault(each.name, []).append(each)
    order = sorted(calls, key=lambda name: (-sum(c.seconds for c in calls[name]), name))
    rows = [(name, stats.quantiles([call.seconds for call in calls[name]])) for name in order]
    return tuple(
        ToolRow(tool=name, failed=sum(not call.ok for call in calls[name]), seconds=seconds)
        for name, seconds in rows
        if seconds
    )


def _of_attempt(record: TrialRecord, attempt: Attempt) -> Iterator[Operation]:
    calls = list(_calls(record, attempt))
    yield from calls
    bad = {fault.phase.value for fault in attempt.faults}
    for phase, seconds in attempt.phases.items():
        if phase not in ASKED_FOR and not (phase == ACT and calls):
            yield Operation(
                trial=record.trial_id, attempt=attempt.number, name=phase, is_call=False,
                seconds=seconds, ok=phase not in bad,
            )  # fmt: skip


def _calls(record: TrialRecord, attempt: Attempt) -> Iterator[Operation]:
    place = record.trial_dir.parent / attempt_name(record.trial_id, attempt.number)
    for line in regular_file(place, CALLS, CALLS_BYTES).splitlines():
        call = _call(line)
        if call is not None:
            name, seconds, ok = call
            yield Operation(
                trial=record.trial_id, attempt=attempt.number, name=name, is_call=True,
                seconds=seconds, ok=ok,
            )  # fmt: skip


def _call(line: bytes) -> tuple[str, float, bool] | None:
    """Tool, seconds and success; None for a line that does not say so."""
    try:
        told: dict[str, Any] = orjson.loads(line)
        seconds = float(told["seconds"])
        name = one_line(told["tool"], 80) if isinstance(told["tool"], str) else ""
        ok = told["ok"] is True
    except (ValueError, KeyError, TypeError):
        return None
    return (name, seconds, ok) if name and math.isfinite(seconds) and seconds >= 0 else None
