# SPDX-License-Identifier: Apache-2.0
"""The slowest operations and the tools, from records and from what agents wrote down."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from envkit.preflight.operations import (
    CALLS_BYTES,
    OF_ONE_NAME,
    SLOWEST,
    operations,
    slowest,
    tools,
)
from envkit.preflight.text import one_line
from envkit.trial.record import TrialRecord

from .conftest import Make

CALL = {"tool": "pdf_read", "ok": True, "seconds": 1.5}


def trial_with(make: Any, text: str, number: int = 1) -> TrialRecord:
    """A trial whose agent left these lines."""
    spec = make.plan().specs[0]
    record = make.record(spec)
    agent = record.trial_dir / "agent"
    agent.mkdir(parents=True)
    (agent / "calls.jsonl").write_text(text, errors="surrogatepass")
    return record


def test_an_act_stands_there_by_its_calls(make: Any) -> None:
    lines = [CALL, {**CALL, "tool": "ls", "ok": False, "seconds": 0.25}]
    record = trial_with(make, "".join(json.dumps(line) + "\n" for line in lines))
    done = operations([record])
    assert {each.name for each in done if not each.is_call} == {
        "start", "gateway", "setup", "collect", "grade", "stop",
    }  # fmt: skip
    assert [(e.name, e.seconds, e.ok) for e in done if e.is_call] == [
        ("pdf_read", 1.5, True), ("ls", 0.25, False),
    ]  # fmt: skip
    assert [(row.tool, row.seconds.n, row.failed) for row in tools(done)] == [
        ("pdf_read", 1, 0), ("ls", 1, 1),
    ]  # fmt: skip


def test_an_act_whose_calls_nobody_wrote_down_is_a_phase(make: Any) -> None:
    done = operations([make.record(make.plan().specs[0])])
    assert [each.name for each in slowest(done)][:3] == ["act", "grade", "gateway"]
    assert tools(done) == ()


def test_no_one_operation_fills_the_list(make: Any) -> None:
    plan = make.plan(("fact",), 40)
    found = slowest(operations(make.record(spec) for spec in plan.specs))
    assert len(found) == SLOWEST
    assert [each.name for each in found[:OF_ONE_NAME]] == ["act"] * OF_ONE_NAME
    assert sum(each.name == "act" for each in found) == OF_ONE_NAME


def test_waits_that_were_asked_for_are_no_slow_operations(make: Any) -> None:
    waits = {"hold": 90.0, "think": 80.0, "idle": 70.0, "act": 1.0}
    attempt = make.attempt(phases=waits)
    found = slowest(operations([make.record(make.plan().specs[0], attempt)]))
    assert [each.name for each in found] == ["act"]


def test_calls_behind_a_link_or_in_a_pipe_are_not_read(make: Any, tmp_path: Path) -> None:
    record = trial_with(make, "")
    (tmp_path / "elsewhere.jsonl").write_text(json.dumps(CALL))
    calls = record.trial_dir / "agent" / "calls.jsonl"
    calls.unlink()
    calls.symlink_to(tmp_path / "elsewhere.jsonl")
    assert tools(operations([record])) == ()
    calls.unlink()
    os.mkfifo(calls)
    assert tools(operations([record])) == ()


def test_calls_without_end_are_read_within_a_bound(make: Any) -> None:
    line = json.dumps(CALL) + "\n"
    record = trial_with(make, line * (2 * CALLS_BYTES // len(line)))
    (row,) = tools(operations([record]))
    assert row.seconds.n == CALLS_BYTES // len(line)


def test_the_calls_of_each_attempt_are_its_own(make: Any) -> None:
    record = trial_with(make, json.dumps(CALL) + "\n")
    second = record.trial_dir.parent / f"{record.trial_id}.2" / "agent"
    record = replace(record, attempts=(*record.attempts, make.attempt(2)))
    assert [e.attempt for e in operations([record]) if e.is_call] == [1]
    assert not second.exists()
    assert [e.attempt for e in operations([record]) if e.name == "act"] == [2]


json_lines = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
named = st.fixed_dictionaries({"tool": json_lines, "ok": json_lines, "seconds": json_lines})


@given(st.lists((json_lines | named).map(json.dumps) | st.text(), max_size=5))
def test_whatever_stands_there_a_report_is_made(tmp_path_factory: Any, lines: list[str]) -> None:
    record = trial_with(Make(tmp_path_factory.mktemp("calls")), "\n".join(lines))
    for each in operations([record]):
        assert each.seconds >= 0
        assert each.name == one_line(each.name)
