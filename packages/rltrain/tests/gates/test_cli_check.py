# SPDX-License-Identifier: Apache-2.0
"""``rltrain check`` as it is typed: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from rltrain.cli import app

from . import spoiled
from .conftest import Ground

pytestmark = pytest.mark.trainer


def typed(*words: object) -> Result:
    return CliRunner().invoke(app, ["check", *map(str, words)])


def test_it_exits_0_where_it_passes_and_1_where_it_fails(ground: Ground, tmp_path: Path) -> None:
    done = typed(ground.honest, "--policy", ground.policy)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("PASS  mean difference ")
    rows = [spoiled.shifted(row, 1) for row in ground.rows]
    store = spoiled.write(tmp_path / "store", rows)
    done = typed(store, "--policy", ground.policy)
    assert done.exit_code == 1
    verdict, _, cause, *_ = done.stdout.splitlines()
    assert verdict.startswith("FAIL  shifted  mean difference ")
    assert cause.startswith("shifted: recorded log-probs stand one token later")
    assert "worst tokens" in done.stdout


def test_json_is_printed_also_where_it_fails(ground: Ground, tmp_path: Path) -> None:
    store = spoiled.write(tmp_path / "store", ground.rows[:9])
    done = typed(store, "--policy", ground.policy, "--json")
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert told["verdict"] == "NOT MEASURED"
    assert [each["code"] for each in told["causes"]] == ["not_measured"]
    done = typed(ground.honest, "--policy", ground.policy, "--json", "--limit", 1e-9)
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    assert told["verdict"] == "FAIL"
    assert told["figures"]["tokens"] == 2560


def test_a_runs_directory_names_its_store(ground: Ground, tmp_path: Path) -> None:
    spoiled.write(tmp_path / "run/trajectories", ground.rows)
    assert typed(tmp_path / "run", "--policy", ground.policy).exit_code == 0


@pytest.mark.parametrize(
    ("store", "policy", "said"),
    [
        (
            "gone",
            "",
            "gone: No such file or directory; name a store, or the",
        ),
        ("", "gone", "tokenizer.json: No such file or directory; name a checkpoint"),
    ],
)
def test_what_cannot_be_run_is_one_line_and_exits_2(
    ground: Ground, tmp_path: Path, store: str, policy: str, said: str
) -> None:
    place = tmp_path / store if store else ground.honest
    done = typed(place, "--policy", tmp_path / policy if policy else ground.policy)
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("rltrain: ")
    assert said in line


def test_weights_that_are_damaged_are_one_line(ground: Ground, tmp_path: Path) -> None:
    import shutil

    policy = tmp_path / "policy"
    shutil.copytree(ground.policy, policy)
    file = policy / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-10])
    rows = [spoiled.of_model(row, "0" * 64) for row in ground.rows]
    done = typed(spoiled.write(tmp_path / "store", rows), "--policy", policy)
    assert done.exit_code == 2
    assert "model.safetensors: is cut off" in done.stderr
