# SPDX-License-Identifier: Apache-2.0
"""``--chaos`` and ``--score-chaos``: what is written, what is refused, and a whole run of both."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from envkit.fault import HarnessError
from envkit.preflight.chaos.choose import read_chosen
from envkit.preflight.chaos.command import arm
from envkit.preflight.types import Plan
from envkit.sandbox.availability import availability

from ...trial.tiny import make_task, spec

RULES = """
[[fault]]
kind = ["raise", "kill-trial"]
phase = "collect"
count = 1
[[fault]]
kind = "nan"
phase = "verify"
count = 1
[[fault]]
kind = "model-endless"
phase = "call"
count = 1
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.toml"
    path.write_text(RULES)
    return path


def plan(home: Path, trials: int) -> Plan:
    out = home / "report" / "trials"
    task = make_task(home / "tasks")
    return Plan(
        source=home / "tasks",
        specs=tuple(spec(task, out, f"ordinary__{n:03d}") for n in range(trials)),
        broken=(),
        agent="replay",
        env="local",
        concurrency=2,
        out_dir=out,
        run_token="token",
    )


def test_what_strikes_is_left_in_the_report_directory(rules: Path, tmp_path: Path) -> None:
    path = arm(rules, plan(tmp_path, 6), tmp_path / "report")
    chosen = read_chosen(path)
    assert path == tmp_path / "report" / "chaos" / "plan.json"
    assert (chosen.run, len(chosen.strikes)) == ("token", 4)


def test_the_log_of_an_earlier_run_goes(rules: Path, tmp_path: Path) -> None:
    report, six = tmp_path / "report", plan(tmp_path, 6)
    log = arm(rules, six, report).with_name("chaos.jsonl")
    log.write_text("{}\n")
    arm(rules, six, report)
    assert not log.exists()


def test_without_a_place_for_its_log_chaos_is_refused(rules: Path, tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="--chaos needs --report DIR"):
        arm(rules, plan(tmp_path, 6), None)


def test_more_faults_than_trials_leave_nothing_behind(rules: Path, tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="trials are left"):
        arm(rules, plan(tmp_path, 3), tmp_path / "report")
    assert not (tmp_path / "report" / "chaos").exists()


def envkit(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from envkit.cli import main; main()", "preflight", *words],
        capture_output=True,
        cwd=home,
        env={**os.environ, "NO_COLOR": "1"},
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.integration
def test_a_run_with_chaos_is_scored_from_what_it_kept(rules: Path, tmp_path: Path) -> None:
    if not (here := availability()).ok:
        pytest.skip(f"missing tool: {here.line()}")
    make_task(tmp_path / "tasks")
    report = ("--report", "kept")
    ran = envkit(
        tmp_path, "tasks", "--concurrency", "3", "--repeat", "6", "--chaos", str(rules), *report
    )
    assert ran.returncode == 1, ran.stderr
    assert "attempts faulted" in ran.stdout
    scored = envkit(tmp_path, "--score-chaos", "kept")
    assert scored.returncode == 0, scored.stdout
    assert scored.stdout.endswith("PASS\n")
    document = json.loads(envkit(tmp_path, "--score-chaos", "kept", "--json").stdout)
    assert (document["faults"]["planned"], document["controls"]["planned"]) == (3, 1)
    assert (document["ok"], document["untouched"]) == (True, 2)
    clean = envkit(tmp_path, "tasks", "--concurrency", "2", *report)
    assert clean.returncode == 0, clean.stdout
    refused = envkit(tmp_path, "--score-chaos", "kept")
    assert refused.returncode == 2
    assert "its report and its plan of chaos are of two runs" in refused.stderr
