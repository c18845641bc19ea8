# SPDX-License-Identifier: Apache-2.0
"""The envkit wheel by itself: light, typed, and able to audit recorded traces."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.packaging

HEAVY = ("harbor", "mcp", "torch", "ray", "vllm", "pandas", "numpy", "pyarrow", "rltrain")
OUTPUT = "\nError output:\nsh: 1: python: not found\n\n\nCommand failed with exit code 127"
ENVELOPE = {"success": False, "output": OUTPUT}
FAILED_CALL = {
    "messages": [
        {"role": "user", "content": "What is the total?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "call-1",
                    "type": "function",
                    "function": {"name": "code_exec", "arguments": '{"code": "python x.py"}'},
                }
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "call-1",
            "content": [{"type": "text", "text": json.dumps(ENVELOPE)}],
        },
        {"role": "assistant", "content": "I could not compute it."},
    ],
    "status": "completed",
}


@pytest.fixture(scope="module")
def programs(clean_environment: Callable[..., Path], wheel_of: Callable[[str], Path]) -> Path:
    return clean_environment(wheel_of("envkit"))


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """Three runs of three tasks that all miss the same program: no one model's mistake."""
    for number in range(3):
        run = tmp_path / "traces" / f"task_{number}"
        run.mkdir(parents=True)
        (run / "trajectory.json").write_text(json.dumps(FAILED_CALL), "utf-8")
    return tmp_path / "traces"


def test_wheel_carries_its_licence_and_its_types(wheel_of: Callable[[str], Path]) -> None:
    names = zipfile.ZipFile(wheel_of("envkit")).namelist()
    assert "envkit/py.typed" in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert all(name.startswith(("envkit/", "envkit-")) for name in names)


def test_nothing_heavy_is_installed_with_it(programs: Path, call, tmp_path: Path) -> None:
    code = f"import importlib.util as u; print([m for m in {HEAVY} if u.find_spec(m)])"
    assert call(programs / "python", "-c", code, cwd=tmp_path).stdout == "[]\n"


def test_help_lists_the_commands(programs: Path, call, tmp_path: Path) -> None:
    done = call(programs / "envkit", "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "audit" in done.stdout
    assert "preflight" in done.stdout


def test_audit_reads_a_trace_and_finds_the_missing_command(
    programs: Path, call, traces: Path, tmp_path: Path
) -> None:
    done = call(programs / "envkit", "audit", str(traces), "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["runs"] == 3
    assert report["detectors"]["command-missing"]["runs"] == 3


def test_lint_checks_a_task(programs: Path, call, tmp_path: Path) -> None:
    task = tmp_path / "tasks" / "bad"
    task.mkdir(parents=True)
    (task / "task.toml").write_text("[agent]\ntimeout_secs = 5\n", "utf-8")
    done = call(programs / "envkit", "lint", "tasks", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "timeout_secs" in done.stdout


def test_a_missing_extra_is_one_line_that_names_the_command(
    programs: Path, call, tmp_path: Path
) -> None:
    done = call(programs / "envkit", "preflight", str(ROOT / "tasks"), cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert "pip install" in done.stderr
    assert "envkit[run]" in done.stderr
