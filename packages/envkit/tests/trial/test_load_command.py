# SPDX-License-Identifier: Apache-2.0
"""`envkit preflight` on the command line: what must not differ, from the options to the verdict."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .tiny import make_task

pytestmark = pytest.mark.integration

PARTS = Path(__file__).parent / "faulty"
FICKLE = "printf '{\"reward\": 1.%d%d}' $((RANDOM % 9 + 1)) $RANDOM > /logs/verifier/reward.json"


def preflight(tmp_path: Path, task: Path, *words: str) -> dict[str, Any]:
    """The report of a run with a cache of its own for its files."""
    (tmp_path / "shared").mkdir(exist_ok=True)
    own = {"PYTHONPATH": str(PARTS), "ENVKIT_TEST_SHARED": str(tmp_path / "shared")}
    command = [sys.executable, "-c", "from envkit.cli import main; main()", "preflight", str(task)]
    done = subprocess.run(
        [*command, *words, "--json", "--report", str(tmp_path / "report")],
        capture_output=True,
        env={**os.environ, **own},
        text=True,
        timeout=240,
        check=False,
    )
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert done.returncode == {"PASS": 0, "FAIL": 1}[report["verdict"]], done.stderr
    return report


def test_a_verifier_that_disagrees_with_itself_fails_the_run(boxes: None, tmp_path: Path) -> None:
    task = make_task(tmp_path / "tasks", "fickle")
    (task / "tests/test.sh").write_text(f"#!/bin/bash\n{FICKLE}\n")
    report = preflight(tmp_path, task, "--concurrency", "2", "--repeat", "2")
    assert report["verdict"] == "FAIL"
    assert report["checks"]["graded_twice"] == 1
    assert report["checks"]["graded_differently"] == ["fickle__000"]
    assert any("paid the same files differently" in line for line in report["why"])
    (listed,) = report["quarantine"]
    assert "flaky_verifier" in {reason["code"] for reason in listed["reasons"]}


def test_trials_that_see_each_other_fail_the_run(boxes: None, tmp_path: Path) -> None:
    task = make_task(tmp_path / "tasks")
    words = ("--concurrency", "1", "--repeat", "2", "--env", "own_parts:UsedAgain")
    report = preflight(tmp_path, task, *words)
    assert report["verdict"] == "FAIL"
    assert len(report["checks"]["saw_another_trial"]) == 1
    assert any("saw what another trial made" in line for line in report["why"])
    assert report["rewards"]["n"] == 1


def test_a_run_shaped_like_training_passes_and_says_what_it_looked_at(
    boxes: None, tmp_path: Path
) -> None:
    task = make_task(tmp_path / "tasks")
    words = ("--concurrency", "2", "--think-time", "lognormal:0.2,0.5", "--hold", "0.5")
    report = preflight(tmp_path, task, *words, "--grade-twice", "--starts-per-s", "10")
    assert report["verdict"] == "PASS", report["why"]
    assert {"think", "idle", "regrade"} <= set(report["phases"])
    assert report["checks"] == {
        "graded_twice": 2,
        "graded_differently": [],
        "graded_once_only": [],
        "boxes_searched": 6,
        "searches_failed": 0,
        "saw_another_trial": [],
    }


def test_an_own_agent_takes_its_arguments_from_the_command_line(
    boxes: None, tmp_path: Path
) -> None:
    task = make_task(tmp_path / "tasks")
    words = ("--concurrency", "1", "--repeat", "1", "--agent", "own_parts:Writes")
    report = preflight(tmp_path, task, *words, "--agent-arg", "word=done", "--agent-arg", "tries=3")
    assert report["verdict"] == "PASS", report["why"]
    assert report["rewards"]["mean"] == 1.0
