# SPDX-License-Identifier: Apache-2.0
"""Real runs from the command line: a ramp, a comparison with it, an estimate, files for others."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from envkit.preflight.quarantine import read
from envkit.sandbox.availability import availability

from ..trial.tiny import make_task

pytestmark = pytest.mark.integration

ENVKIT = (sys.executable, "-c", "from envkit.cli import main; main()", "preflight")
TIMEOUT_S = 300


@pytest.fixture(scope="module", autouse=True)
def boxes() -> None:
    here = availability()
    if not here.ok:
        pytest.skip(f"missing tool: {here.line()}")


@dataclass(frozen=True, kw_only=True)
class Ramped:
    tasks: Path
    report: Path
    files: Path
    code: int
    json: dict[str, Any]


def preflight(*words: object) -> subprocess.CompletedProcess[str]:
    command = [*ENVKIT, *(str(word) for word in words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


@pytest.fixture(scope="module")
def ramped(tmp_path_factory: pytest.TempPathFactory) -> Ramped:
    """Two tasks at one and at three at once."""
    root = tmp_path_factory.mktemp("ramp")
    for name in ("first", "second"):
        make_task(root / "tasks", name)
    report, files = root / "report", root / "files"
    files.mkdir()
    done = preflight(
        root / "tasks", "--ramp", "1,3", "--report", report, "--json",
        "--estimate", "steps=3,prompts=2,samples=2", "--junit", files / "j.xml",
        "--markdown", files / "m.md", "--quarantine", files / "q.json",
    )  # fmt: skip
    assert done.stdout, done.stderr
    read_back = json.loads(done.stdout)
    return Ramped(
        tasks=root / "tasks", report=report, files=files, code=done.returncode, json=read_back
    )


def test_each_level_really_had_as_many_boxes_alive_as_it_says(ramped: Ramped) -> None:
    assert ramped.code == 0, ramped.json["why"]
    levels = {level["concurrency"]: level for level in ramped.json["ramp"]["levels"]}
    assert [(at, level["trials"], level["peak_live"]) for at, level in levels.items()] == [
        (1, 2, 1), (3, 3, 3),
    ]  # fmt: skip
    assert all(level["per_s"] > 0 and level["cpu_s"] > 0 for level in levels.values())
    assert ramped.json["ramp"]["knee"] in (1, 3)
    assert "with the same rewards at each end" in ramped.json["why"][0]


def test_every_trial_of_the_ramp_has_its_own_record(ramped: Ramped) -> None:
    kept = sorted(path.parent.name for path in ramped.report.glob("trials/*/*/envkit.json"))
    assert kept == ["first__000", "first__001", "first__002", "second__000", "second__001"]
    assert {row["trial"] for row in ramped.json["outcomes"]} == set(kept)


def test_what_others_read_of_it_is_there(ramped: Ramped) -> None:
    suite = ET.fromstring((ramped.files / "j.xml").read_bytes())
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("6", "0", "0")
    assert (ramped.files / "m.md").read_text().startswith("## envkit preflight: PASS\n")
    assert read(ramped.files / "q.json") == read(ramped.report / "quarantine.json") == ()
    page = (ramped.report / "report.html").read_text()
    assert "<h2>Ramp</h2>" in page
    assert "<h2>The real run</h2>" in page
    assert ramped.json["estimate"]["trials"] == 12
    assert ramped.json["estimate"]["hours"]["value"] > 0
    assert all(hours > 0 for hours in ramped.json["estimate"]["sandbox_hours"].values())


def test_a_later_run_is_compared_with_the_level_it_shares(ramped: Ramped) -> None:
    done = preflight(ramped.tasks, "--concurrency", "3", "--baseline", ramped.report, "--json")
    found = json.loads(done.stdout)
    measures = {row["measure"]: row for row in found["comparison"]["changes"]}
    assert {"trial", "act", "grade", "CPU", "faults", "reward of first"} <= set(measures)
    assert (measures["trial"]["n_before"], measures["trial"]["n_now"]) == (3, 3)
    assert measures["reward of first"]["verdict"] == "same"
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--concurrency", "2"), "it ran at concurrency 1, 3, this run at 2"),
        (("--concurrency", "3", "--agent", "nop"), "it ran agent replay, this run nop"),
        (("--concurrency", "3", "--limit", "1"), "only it has the task second"),
    ],
)
def test_what_cannot_be_compared_is_refused_before_a_trial(
    ramped: Ramped, words: tuple[str, ...], line: str
) -> None:
    done = preflight(ramped.tasks, *words, "--baseline", ramped.report)
    assert done.returncode == 2
    assert line in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_baseline_that_lies_where_the_report_goes_is_read_before_it_is_replaced(
    ramped: Ramped, tmp_path: Path
) -> None:
    first = tmp_path / "r"
    for _ in range(2):
        words = (ramped.tasks, "--limit", "1", "--concurrency", "1", "--report", first)
        baseline = ("--baseline", first) if (first / "report.json").exists() else ()
        done = preflight(*words, *baseline, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["comparison"]["baseline"] == str(first / "report.json")


def test_a_ramp_does_not_go_on_where_it_was_cut_off(ramped: Ramped) -> None:
    done = preflight("--resume", ramped.report)
    assert done.returncode == 2
    assert "so it is not resumed; run it anew with --ramp 1,3" in done.stderr
    assert (ramped.report / "report.json").exists()


def test_ctrl_c_keeps_the_levels_that_ended(ramped: Ramped, tmp_path: Path) -> None:
    words = (str(ramped.tasks), "--ramp", "1,3", "--report", str(tmp_path / "r"), "--json")
    with subprocess.Popen(
        [*ENVKIT, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        for line in running.stderr:
            if line.startswith("concurrency 3 fits"):
                os.kill(running.pid, signal.SIGINT)
                break
        out, err = running.communicate(timeout=TIMEOUT_S)
    assert running.returncode == 130, out + err
    found = json.loads(out)
    assert found["verdict"] == "INTERRUPTED"
    assert [level["concurrency"] for level in found["ramp"]["levels"]] == [1]
    assert found["ramp"]["levels"][0]["trials"] == 2
    assert json.loads((tmp_path / "r" / "report.json").read_text()) == found
