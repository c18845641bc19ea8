# SPDX-License-Identifier: Apache-2.0
"""The command as a person runs it: a process, its two streams and its exit code."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from envkit.audit import SCHEMA

pytestmark = pytest.mark.integration

UNION = (
    "Internal error: Validation error: operations.#: Unable to extract tag using discriminator '*'"
)
SCREEN = f"""\
7 runs, 85.7 % with an error that is not the model's, 1 polluted zero, 3 without a verdict
mean reward 0.500 as recorded (n=3), 0.750 over valid rewards (n=2)

Tools
tool          calls  failed     rate  95 % interval  runs
sheets           12      12  100.0 %   75.8-100.0 %     3
code_exec         9       7   77.8 %    45.3-93.7 %     3
final_answer      3       0    0.0 %     0.0-56.1 %     3
docs              1       0    0.0 %     0.0-79.3 %     1

Errors, in most runs first (runs, calls)
   3    12  {UNION}
            sheets  week_1/task_sheet/trajectory.json:3
   3     3  ModuleNotFoundError: No module named pandas
            code_exec  week_1/task_rent/trajectory.json:5
   3     3  python: not found
            code_exec  week_1/task_rent/trajectory.json:3
   1     1  pip: not found
            code_exec  week_1/task_wages/trajectory.json:7

Detectors
detector            findings  runs  judged  owner
schema-rejection          12     3     7/7  harness 12
package-discovery          3     3     7/7  environment 3
command-missing            4     3     7/7  environment 3, unknown 1
identical-calls            3     3     7/7  harness 3
missing-verdict            3     3     6/7  harness 3
turn-cap-no-answer         3     3     6/7  environment 3
polluted-zero              1     1     3/7  environment 1

15 other files ignored
"""


def audit(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "envkit.cli_audit", *map(str, arguments)]
    variables = {**os.environ, "COLUMNS": "110", "NO_COLOR": "1", **environment}
    return subprocess.run(command, capture_output=True, text=True, env=variables, timeout=60)


def lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def test_the_first_screen(fixtures: Path) -> None:
    done = audit(fixtures / "openai")
    assert done.returncode == 0, done.stderr
    assert lines(done.stdout) == lines(SCREEN)
    assert done.stderr == ""


def test_json_alone_is_the_whole_of_stdout(fixtures: Path) -> None:
    done = audit(fixtures, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["schema"], report["runs"]) == (SCHEMA, 13)


@pytest.mark.parametrize("order", [("dir", "--json", "file"), ("--json", "file", "dir")])
def test_json_to_a_file_leaves_the_screen(fixtures: Path, tmp_path: Path, order) -> None:
    names = {"dir": fixtures, "file": tmp_path / "new" / "audit.json"}
    done = audit(*[names.get(part, part) for part in order])
    assert done.returncode == 0, done.stderr
    assert "13 runs" in done.stdout
    assert json.loads(names["file"].read_text("utf-8"))["runs"] == 13


def test_report_writes_both_files_and_says_where(fixtures: Path, tmp_path: Path) -> None:
    done = audit(fixtures, "--report", tmp_path, "--html", tmp_path / "page.html")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "audit.html",
        "audit.json",
        "page.html",
    ]
    assert f"written: {tmp_path / 'page.html'}" in done.stdout


@pytest.mark.parametrize(
    ("gate", "code"), [("2%", 1), ("90", 0), ("85.8 %", 0), ("85%", 1), ("100%", 0)]
)
def test_the_gate_decides_the_exit_code(fixtures: Path, gate: str, code: int) -> None:
    done = audit(fixtures / "openai", "--fail-over", gate)
    assert done.returncode == code
    assert ("FAIL: 85.71 % of runs" in done.stderr) is (code == 1)


def test_a_clean_directory_passes_a_gate_of_zero(traces) -> None:
    traces.run("task_a", [("list_files", {}, "a"), "It is 42."])
    assert audit(traces.root, "--fail-over", "0%").returncode == 0


def test_unreadable_files_are_listed_and_fail_only_when_strict(fixtures: Path) -> None:
    done = audit(fixtures)
    assert done.returncode == 0
    assert "broken/cut/trajectory.json: cut off or broken JSON" in done.stdout
    strict = audit(fixtures, "--strict")
    assert strict.returncode == 2
    assert "3 candidates could not be read" in strict.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no directory given"),
        (("/no/such/place",), "/no/such/place: no such directory"),
        ((".", "--fail-over", "lots"), "--fail-over lots: not a percentage"),
        ((".", "--fail-over", "101"), "--fail-over 101: not a percentage"),
        ((".", "."), "one directory at a time"),
    ],
)
def test_a_wrong_argument_is_one_line_and_exit_2(arguments, said) -> None:
    done = audit(*arguments)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert said in done.stderr


def test_nothing_to_read_is_exit_2_and_says_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing", "utf-8")
    done = audit(tmp_path)
    assert done.returncode == 2
    assert "no run could be read" in done.stderr
    assert "1 other file ignored" in done.stdout


@pytest.mark.parametrize("text", ['{"messages": [', "", "{", "[1, 2"])
def test_of_one_file_that_cannot_be_read_only_the_reason_is_shown(
    tmp_path: Path, text: str
) -> None:
    trace = tmp_path / "trajectory.json"
    trace.write_text(text, "utf-8")
    done = audit(trace)
    assert done.returncode == 2
    first, second = done.stdout.splitlines()
    assert first == "1 file could not be read"
    assert second.startswith("  trajectory.json: ")
    (line,) = done.stderr.splitlines()
    assert "no run could be read. trajectory.json: " in line


def test_an_output_that_cannot_be_written_is_one_line(fixtures: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    done = audit(fixtures, "--html", tmp_path / "file" / "page.html")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "cannot be written" in done.stderr


def test_a_hostile_trace_cannot_touch_the_terminal(traces, say) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J[red]\u202eBearer abcdefgh12345678"
    traces.run("task_a", [(f"tool{evil}", {}, say({"error": evil}))])
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "envkit.cli_audit", str(traces.root)]
    variables = {**os.environ, "TERM": "dumb", "NO_COLOR": "1", "COLUMNS": "120"}
    child = subprocess.Popen(command, stdout=slave, stderr=slave, env=variables)
    os.close(slave)
    seen = _drain(master)
    assert child.wait(60) == 0
    assert "owned" not in seen
    assert "abcdefgh12345678" not in seen
    assert "[red]" in seen
    assert "\u202e" not in seen


def _drain(master: int) -> str:
    """All a terminal received; its other end closed reads as an error on Linux."""
    chunks: list[bytes] = []
    try:
        while chunk := os.read(master, 65536):
            chunks.append(chunk)
    except OSError:
        pass
    finally:
        os.close(master)
    return b"".join(chunks).decode()


def test_an_unknown_exception_of_a_trial_is_not_printed_raw(fixtures: Path, tmp_path: Path) -> None:
    source = fixtures / "harbor/jobs/monday/rent__good/result.json"
    result = json.loads(source.read_text("utf-8"))
    result["exception_info"] = {
        "exception_type": "NeverHeardOfError",
        "exception_message": "\x1b[2Jboo",
        "exception_traceback": "Traceback (most recent call last):\nNeverHeardOfError: \x1b[2Jboo",
        "occurred_at": "2026-03-02T10:00:03Z",
    }
    trial = tmp_path / "t__1"
    (trial / "agent").mkdir(parents=True)
    (trial / "result.json").write_text(json.dumps(result), "utf-8")
    done = audit(tmp_path)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "(n=0)" in done.stdout  # unknown is invalid
