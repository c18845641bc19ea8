# SPDX-License-Identifier: Apache-2.0
"""An earlier report as a baseline: what is refused before a run, what is found after it."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from envkit.fault import HarnessError
from envkit.preflight import change_views
from envkit.preflight.baseline import Baseline, against, check_comparable, read_baseline
from envkit.preflight.measures import read_measures
from envkit.preflight.outcomes import Outcome, outcomes
from envkit.preflight.report_json import to_json
from envkit.preflight.run import run
from envkit.preflight.types import SCHEMA, Report, Verdict


def report_of(make: Any, factor: float = 1.0, **changes: Any) -> Report:
    """Sixty-four trials of two tasks whose acting takes from one second to three."""
    plan = make.plan(samples=32, **changes)
    script = {
        spec.trial_id: make.record(
            spec, make.attempt(phases={"start": 0.5, "act": factor * (1 + n * 37 % 64 / 32)})
        )
        for n, spec in enumerate(plan.specs)
    }
    work = run(plan, make.launcher(script=script), make.view(), supplies=make.roomy, settle_s=0.0)
    return asyncio.run(work)


def kept(report: Report, path: Path) -> Path:
    path.write_bytes(orjson.dumps(to_json(report)))
    return path


def test_a_report_is_read_back_with_every_trial(make: Any, tmp_path: Path) -> None:
    report = report_of(make)
    file = kept(report, tmp_path / "report.json")
    for path in (file, tmp_path):
        baseline = read_baseline(path)
        assert baseline.rows == tuple(outcomes(report))
        assert (baseline.agent, baseline.env) == ("replay", "local")


def test_a_run_that_got_slower_says_in_what_and_by_how_much(make: Any, tmp_path: Path) -> None:
    baseline = read_baseline(kept(report_of(make), tmp_path / "report.json"))
    found = against(report_of(make, factor=1.5), baseline, max_slowdown=None)
    assert found.verdict is Verdict.PASS
    assert found.comparison is not None
    lines = [line.plain for line in change_views.text(found.comparison)]
    assert lines[0] == f"against {tmp_path}/report.json"
    assert [line.split()[:2] for line in lines[1:-1]] == [["worse", "trial"], ["worse", "act"]]
    assert "1.50 times" in lines[2]
    assert "p < 0.001" in lines[2]
    assert lines[-1].endswith("measures within chance")


def test_the_gate_is_breached_only_where_it_was_asked_to_be(make: Any, tmp_path: Path) -> None:
    baseline = read_baseline(kept(report_of(make), tmp_path / "report.json"))
    slower = report_of(make, factor=1.5)
    assert against(slower, baseline, max_slowdown=None).verdict is Verdict.PASS
    assert against(slower, baseline, max_slowdown=0.6).verdict is Verdict.PASS
    failed = against(slower, baseline, max_slowdown=0.2)
    assert failed.verdict is Verdict.FAIL
    assert failed.why[0].startswith("worse than the baseline: trial 2.48 s to 3.48 s")
    assert failed.why[-1].endswith("20 % more is allowed")
    again = against(report_of(make), baseline, max_slowdown=0.0)
    assert again.verdict is Verdict.PASS


def test_a_run_that_failed_keeps_its_reasons_before_those_of_the_comparison(
    make: Any, tmp_path: Path
) -> None:
    baseline = read_baseline(kept(report_of(make), tmp_path / "report.json"))
    failed = replace(report_of(make, factor=1.5), verdict=Verdict.FAIL, why=("left behind",))
    assert against(failed, baseline, max_slowdown=0.2).why[0] == "left behind"
    stopped = replace(failed, verdict=Verdict.INTERRUPTED)
    assert against(stopped, baseline, max_slowdown=0.2).verdict is Verdict.INTERRUPTED


def test_a_worse_reward_breaches_a_gate_that_was_asked_for(make: Any, tmp_path: Path) -> None:
    baseline = read_baseline(kept(report_of(make, agent="my.agents:Mine"), tmp_path / "r.json"))
    now = report_of(make, agent="my.agents:Mine")
    poorer = tuple(replace(r, reward=0.0) if r.task == "fact" else r for r in now.records)
    found = against(replace(now, records=poorer), baseline, max_slowdown=1.0)
    assert found.verdict is Verdict.FAIL
    assert found.why == ("worse than the baseline: reward of fact 1.000 to 0.000, p < 0.001",)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"schema": "envkit.preflight/2"}, "schema is 'envkit.preflight/2', this version reads"),
        ({"schema": None}, "schema is None"),
        ({"outcomes": None}, "it lists no trials; run that preflight once more"),
        ({"outcomes": [{"trial": "x"}]}, "KeyError"),
        ({"agent": None, "outcomes": [1]}, "no figure"),
    ],
)
def test_a_report_that_cannot_be_compared_is_refused_in_one_line(
    make: Any, tmp_path: Path, changes: dict[str, Any], line: str
) -> None:
    file = tmp_path / "report.json"
    file.write_text(json.dumps({**to_json(report_of(make)), **changes}))
    with pytest.raises(HarnessError, match=line) as refused:
        read_baseline(file)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '"x"'])
def test_what_is_no_report_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(HarnessError, match=r"--baseline .*x\.json: (is no JSON|schema is None)"):
        read_baseline(file)


def test_a_report_that_is_not_there_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"No such file or directory; name a report\.json"):
        read_baseline(tmp_path / "nowhere")
    with pytest.raises(HarnessError, match=r"report\.json: No such file"):
        read_baseline(tmp_path)


def row(task: str, concurrency: int) -> Outcome:
    return Outcome(
        trial=f"{task}__000", task=task, concurrency=concurrency, reward=1.0, attempts=1,
        faulted=0, seconds=1.0, phases={}, cpu_s=1.0, memory_mib=1.0,
    )  # fmt: skip


def baseline_of(tasks: str = "fact workbook", at: int = 6, **changes: Any) -> Baseline:
    load = {"think": "", "hold_s": 0.0}
    values: dict[str, Any] = {"agent": "replay", "env": "local", "load": load, **changes}
    rows = tuple(row(task, at) for task in tasks.split())
    return Baseline(path=Path("r.json"), rows=rows, **values)


@pytest.mark.parametrize(
    ("baseline", "line"),
    [
        (baseline_of(agent="oracle"), "it ran agent oracle, this run replay"),
        (baseline_of(env="my.env:Env"), "it ran env my.env:Env, this run local"),
        (baseline_of(load={"think": "2", "hold_s": 0.0}), "it ran load {'think': '2'"),
        (baseline_of(tasks="fact"), "it has no task workbook"),
        (baseline_of(tasks="fact form workbook"), "only it has the task form"),
        (baseline_of(at=550), "it ran at concurrency 550, this run at 6"),
    ],
)
def test_another_run_is_refused_and_what_differs_is_named(
    make: Any, baseline: Baseline, line: str
) -> None:
    with pytest.raises(HarnessError, match=line):
        check_comparable(baseline, make.plan(), (6,))


def test_a_ramp_is_comparable_where_one_level_is(make: Any) -> None:
    check_comparable(baseline_of(), make.plan(), (6, 64))


def test_a_slowdown_is_allowed_only_of_something() -> None:
    with pytest.raises(HarnessError, match="add --baseline REPORT"):
        read_measures(baseline=None, max_slowdown="20", training=None)


@pytest.mark.parametrize("text", ["fast", "-1", "101", "nan"])
def test_a_slowdown_that_is_no_percentage_is_refused(make: Any, tmp_path: Path, text: str) -> None:
    file = kept(report_of(make), tmp_path / "report.json")
    with pytest.raises(HarnessError, match="--max-slowdown"):
        read_measures(baseline=file, max_slowdown=text, training=None)


def test_the_json_has_a_row_a_measure_and_the_schema_is_the_same(make: Any, tmp_path: Path) -> None:
    baseline = read_baseline(kept(report_of(make), tmp_path / "report.json"))
    found = to_json(against(report_of(make, factor=1.5), baseline, max_slowdown=None))
    assert found["schema"] == SCHEMA
    rows = {each["measure"]: each for each in found["comparison"]["changes"]}
    assert rows["act"]["verdict"] == "worse"
    assert rows["act"]["ratio"]["value"] == pytest.approx(1.5)
    assert rows["reward of fact"]["ratio"]["value"] is None
    assert set(rows["act"]) == {
        "measure", "unit", "before", "now", "n_before", "n_now", "ratio", "p", "p_adjusted",
        "verdict",
    }  # fmt: skip
