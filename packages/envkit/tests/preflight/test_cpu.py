# SPDX-License-Identifier: Apache-2.0
"""CPU seconds of a run, from the processes that spent them to the tables of its report."""

import io
import re
import resource
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from envkit.preflight.report_html import to_html
from envkit.preflight.report_json import to_json
from envkit.preflight.report_text import print_report
from envkit.preflight.tables import cpu_by_part, cpu_by_phase
from envkit.preflight.types import Report, RunGauges, Verdict
from envkit.sandbox import availability
from envkit.sandbox.cgroup import find_parent

from ..trial.tiny import launcher, make_task, run, run_trials, spec

BURN = run("for i in $(seq 200000); do :; done; echo done > /filesystem/done.txt")
NEAR = 0.10
"""Of what the kernel says the whole run used: what may be missing or counted twice."""


def _waited_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.integration
def test_what_is_counted_is_what_the_kernel_says_the_run_used(tmp_path: Path) -> None:
    if not availability().ok:
        pytest.skip(f"missing tool: {availability().line()}")
    if find_parent() is None:
        pytest.skip("not run: no control group can be made here")
    task = make_task(tmp_path / "tasks", calls=[BURN, {"final_answer": "forty-two\n"}])
    specs = [spec(task, tmp_path / "out", f"t{number}") for number in range(4)]
    before_s = _waited_s()
    ran = run_trials(launcher(tmp_path / "out"), specs)
    used_s = _waited_s() - before_s
    records = list(ran.records.values())
    parts, phases = cpu_by_part(records), cpu_by_phase(records)
    shared = [event.shared_cpu_s for event in ran.events if isinstance(event, RunGauges)][-1]
    counted_s = sum(parts.values()) + shared["fork server"] + shared["nursery"]
    assert abs(counted_s - used_s) <= NEAR * used_s, (counted_s, used_s, parts, shared)
    assert abs(sum(phases.values()) - sum(parts.values())) <= NEAR * sum(parts.values())
    assert set(parts) == {"trial", "forks", "box:agent", "box:gateway", "box:verifier"}
    assert all(seconds > 0 for seconds in parts.values())
    assert phases["act"] > phases["collect"]


def _report(make: Any) -> Report:
    phases = {"act": 3.0, "start": 1.0, "beyond": 0.5}
    parts = {"trial": 3.0, "forks": 1.5}
    records = (make.record(make.plan().specs[0], make.attempt(cpu_s=parts, cpu_by_phase=phases)),)
    return Report(
        verdict=Verdict.PASS,
        why=(),
        plan=None,
        attempts=2,
        records=records,
        cpu_s=cpu_by_part(records),
        cpu_by_phase=cpu_by_phase(records),
        shared_cpu_s={"nursery": 2.25},
    )


def test_every_form_of_a_report_has_the_seconds_of_the_run_and_of_a_trial(make: Any) -> None:
    report = _report(make)
    assert list(report.cpu_by_phase) == ["start", "act", "beyond"]
    console = Console(width=100, file=io.StringIO())
    print_report(report, console)
    told = console.file.getvalue()
    assert "2.25 CPU s a trial and 2.2 shared" in told
    page = " ".join(re.sub("<[^>]*>", " ", to_html(report)).split())
    assert "phase act 1.500 3.0" in page
    assert "part forks 0.750 1.5" in page
    assert "shared nursery 2.2" in page
    told = to_json(report)
    assert told["cpu_s_by_phase"] == {"start": 1.0, "act": 3.0, "beyond": 0.5}
    assert told["cpu_s_shared"] == {"nursery": 2.25}
