# SPDX-License-Identifier: Apache-2.0
"""Real runs, killed at exact points, go on; nothing that ended is repeated and nothing is left."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envkit.preflight.types import TrialEnded, TrialStarted
from envkit.sandbox.availability import availability
from envkit.sandbox.reaper import reap_run, remnants
from envkit.trial.record import attempt_from_dict, write_taken

from ..trial.tiny import LIST, launcher, make_task, run_trials, spec

pytestmark = pytest.mark.integration

KILL_AT = Path(__file__).parent / "kill_at.py"
ENVKIT = ("-c", "from envkit.cli import main; main()")
TIMEOUT_S = 120


@pytest.fixture(scope="module", autouse=True)
def boxes() -> None:
    here = availability()
    if not here.ok:
        pytest.skip(f"missing tool: {here.line()}")


def run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *(str(word) for word in words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


def killed(point: str, number: int, *words: object) -> None:
    done = run(KILL_AT, point, number, "preflight", *words)
    assert done.returncode == -9, done.stdout + done.stderr


def records(report: Path) -> dict[str, tuple[int, int]]:
    """Trial to the inode and time of its record's file."""
    return {
        path.parent.name: (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in report.glob("trials/*/envkit.json")
    }


def journal(report: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (report / "journal.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("point", "number"), [("act", 2), ("record-on-disk-but-not-said", 2), ("report", 2)]
)
def test_a_killed_run_goes_on_and_repeats_nothing_that_ended(
    tmp_path: Path, point: str, number: int
) -> None:
    make_task(tmp_path / "tasks")
    report = tmp_path / "r"
    words = ("--concurrency", 2, "--repeat", 3, "--report", report)
    killed(point, number, tmp_path / "tasks", *words)
    token = json.loads((report / "run.json").read_text())["run_token"]
    before = records(report)
    done = run(*ENVKIT, "preflight", "--resume", report, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told == json.loads((report / "report.json").read_text())
    assert (told["trials"], told["attempts"], told["rewards"]["n"]) == (3, 3, 3)
    assert told["peak_live"] == 2
    assert told["resumed"]["times"] == 1
    after = records(report)
    assert before.items() <= after.items()
    lines = journal(report)
    (_, second) = (n for n, line in enumerate(lines) if line["event"] == "began")
    again = {line["trial"] for line in lines[second:] if line["event"] == "started"}
    assert again == after.keys() - before.keys()
    assert told["resumed"]["attempts_cut_off"] == len(
        [path for path in (report / "cut-off").glob("1/*") if path.is_dir()]
    )
    assert remnants(token) == []


def test_a_run_that_nobody_named_a_directory_for_goes_on_where_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    make_task(tmp_path / "tasks")
    done = run(KILL_AT, "act", 1, "preflight", tmp_path / "tasks", "--concurrency", 1)
    assert done.returncode == -9
    (line,) = [each for each in done.stderr.splitlines() if "--resume" in each]
    root = Path(line.rpartition(" ")[2])
    assert root.parent == tmp_path / "cache/envkit/preflight"
    done = run(*ENVKIT, "preflight", "--resume", root, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["resumed"] == {"times": 1, "attempts_cut_off": 1}
    assert not root.exists()


def test_a_resumption_that_is_refused_touches_nothing(tmp_path: Path) -> None:
    task, report = make_task(tmp_path / "tasks"), tmp_path / "r"
    killed("act", 1, tmp_path / "tasks", "--concurrency", 1, "--report", report)
    token = json.loads((report / "run.json").read_text())["run_token"]
    assert reap_run(token) == []  # what it started writes on until it has ended
    before = {path: path.stat().st_mtime_ns for path in report.rglob("*") if path.is_file()}
    refusals = {
        "--seed 5: the run has 0": ("--seed", 5),
        "the run goes on in": ("--report", tmp_path / "other"),
        "name one": ("--rerun-failed", report),
    }
    for line, words in refusals.items():
        done = run(*ENVKIT, "preflight", "--resume", report, *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert line in done.stderr
    (task / "instruction.md").write_text("Do something else.\n")
    done = run(*ENVKIT, "preflight", "--resume", report)
    assert done.returncode == 2
    assert f"{task} changed since the run began" in done.stderr
    mark = report / ".envkit-preflight"
    after = {path: path.stat().st_mtime_ns for path in report.rglob("*") if path.is_file()}
    assert {**after, mark: 0} == {**before, mark: 0}


def test_what_failed_runs_again_alone_under_its_own_ids_and_such_a_run_can_be_resumed(
    tmp_path: Path,
) -> None:
    make_task(tmp_path / "tasks", "good")
    make_task(tmp_path / "tasks", "half", [LIST, {"final_answer": "forty-two\n"}])
    first, second = tmp_path / "first", tmp_path / "second"
    words = ("--concurrency", 2, "--repeat", 1)
    done = run(*ENVKIT, "preflight", tmp_path / "tasks", *words, "--report", first)
    assert done.returncode == 1
    make_task(tmp_path / "tasks", "half")
    killed("act", 1, "--rerun-failed", first, "--report", second)
    done = run(*ENVKIT, "preflight", "--resume", second, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["rerun_of"] == str(first)
    assert list(records(second)) == ["half__000"]
    assert records(first).keys() == {"good__000", "half__000"}


def test_a_trial_goes_on_with_the_attempts_that_are_left(tmp_path: Path) -> None:
    task, out = make_task(tmp_path / "tasks"), tmp_path / "out"
    attempt = {"number": 1, "started_at": 1.0, "phases": {"start": 3.0}, "faults": [FAULT]}
    failed = attempt_from_dict(attempt)
    specs = [spec(task, out, "once"), spec(task, out, "spent")]
    earlier = {"once": (failed,), "spent": (failed, attempt_from_dict({**attempt, "number": 2}))}
    write_taken(out / "once", failed)
    ran = run_trials(launcher(out, earlier=earlier), specs)
    assert [each.number for each in ran["once"].attempts] == [1, 2]
    assert ran["once"].reward == 1.0
    assert ran["once"].trial_dir.name == "once.attempt2"
    assert ran["once"].seconds > 3.0
    assert len(ran["spent"].attempts) == 2
    assert ran["spent"].reward is None
    assert [e.trial_id for e in ran.events if isinstance(e, TrialStarted)] == ["once"]
    assert sum(isinstance(event, TrialEnded) for event in ran.events) == 2


FAULT = {
    "code": "SandboxDied",
    "owner": "sandbox",
    "phase": "start",
    "policy": {"retry": True, "grade": False, "reward_valid": False},
    "message": "gone",
}


def test_an_interrupted_run_says_how_it_goes_on(tmp_path: Path) -> None:
    make_task(tmp_path / "tasks")
    report = tmp_path / "r"
    words = ["preflight", str(tmp_path / "tasks"), "--concurrency", "1", "--report", str(report)]
    with subprocess.Popen(
        [sys.executable, *ENVKIT, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert "fits" in process.stderr.readline()
        os.kill(process.pid, 15)
        out, _ = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130
    assert out.splitlines()[-1] == f"resume envkit preflight --resume {report}"
    done = run(*ENVKIT, "preflight", "--resume", report, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["rewards"]["n"] == 1
