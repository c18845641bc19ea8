# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rltrain.cli import app

from .configs import QWEN3_8B
from .rows import row, written

pytestmark = pytest.mark.trainer

runner = CliRunner()
SMALL = (
    *("--set", "rollout.concurrency=24", "--set", "batch.prompts=4", "--set", "batch.samples=4"),
    *("--steps", "6", "--grid", "10:4"),
)


def told(*words: str) -> dict[str, object]:
    result = runner.invoke(app, ["plan", *words, "--json"])
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def test_a_published_run_needs_no_model_and_ends_in_a_sentence() -> None:
    result = runner.invoke(app, ["plan", "qwen36-35b", *SMALL])
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("qwen36-35b: lognormal: median 20,000")
    assert "published: 550 trials at once" in result.stdout
    assert result.stdout.rstrip().endswith(".")
    assert "10 : 4 (recipe)" in result.stdout


@pytest.mark.parametrize(
    ("name", "published", "gpu", "layer"),
    [("qwen36-35b", 550, "h100", 10), ("qwen35-397b", 300, "h200", 15)],
)
def test_the_interval_of_a_published_run_is_told_and_contains_its_figure(
    name: str, published: int, gpu: str, layer: int
) -> None:
    grid = ("--grid", "10:4") if published == 550 else ("--grid", "12:8")
    found = told(name, *SMALL[:-2], *grid)
    assert found["assumptions"]["gpu"] == gpu  # pyright: ignore
    assert found["kv"]["bytes_a_token_a_gpu"] == layer * 2 * 256 * 2  # pyright: ignore
    assert found["published"]["concurrency"] == published  # pyright: ignore
    low, high = found["ceilings"]["kv_interval"]  # pyright: ignore
    assert low <= published <= high
    assert found["published"]["contained"] is True  # pyright: ignore


def test_a_model_s_directory_and_a_store_are_planned_by(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(QWEN3_8B))
    written(tmp_path / "out" / "trajectories", [row("a", 0), row("a", 1)])
    given = ("--model", str(tmp_path / "model"), "--trajectories", str(tmp_path / "out"))
    quick = ("--steps", "6", "--assume", "cores=4", "--assume", "engine.cpu_gflops=1e4")
    found = told("tiny-cpu", *given, *quick)
    assert found["trials"]["source"] == "2 trajectories of 1 prompts"  # pyright: ignore
    assert found["assumptions"]["cores"] == 4.0  # pyright: ignore
    assert found["set"] == ["cores", "engine.cpu_gflops"]


def test_the_page_goes_where_it_is_wanted(tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    assert runner.invoke(app, ["plan", "qwen36-35b", *SMALL, "--out", str(page)]).exit_code == 0
    assert page.read_text("utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tiny-cpu"], "tiny-cpu: names no model; give --model DIR"),
        (["tiny-cpu", "--model", "nowhere"], "nowhere: No such file or directory; name a model's"),
        (["qwen36-35c"], "there is none of that name; did you mean qwen36-35b?"),
        (["qwen36-35b", "--assume", "gpu"], "--assume gpu: give NAME=VALUE"),
        (["qwen36-35b", "--assume", "gpux=1"], "gpux: there is no such setting"),
        (["qwen36-35b", "--assume", "faults=2"], "faults: 2 is no share"),
        (["qwen36-35b", "--grid", "4"], "--grid 4: give nodes as INFERENCE:TRAINING"),
        (["qwen36-35b", "--set", "cluster.engine_tp=1"], "give it more GPUs"),
        (["qwen36-35b", "--trajectories", "nowhere"], "no segment of a trajectory store"),
        (["qwen36-35b", "--calibrate", "nowhere"], "holds no run.json"),
        (["qwen36-35b", *SMALL, "--out", "no/where.html"], "name a FILE that can be written"),
        (["made.toml"], "made.toml: has no [rollout]"),
        (["open.toml"], "policy: must be given"),
        (["made.toml", "--set", "rollout.concurrency=9"], "nowhere: No such file or directory"),
    ],
)
def test_what_cannot_be_planned_is_one_line_and_exits_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("made.toml").write_text('[policy]\npath = "nowhere"\n')
    Path("open.toml").write_text("[rollout]\n")
    result = runner.invoke(app, ["plan", *words])
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert result.stderr.startswith("rltrain: ")
    assert result.stderr.count("\n") == 1
