# SPDX-License-Identifier: Apache-2.0
"""Rows say which weights sampled them, and a run goes on only with those it began with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from envkit.trajectory.store import Store
from envkit.trajectory.weights import weights_digest

from ..trajectory.tensors import write
from ..trial.tiny import make_task
from .small import envkit, killed, model_that_says

pytestmark = pytest.mark.integration


@pytest.fixture(autouse=True)
def needs_boxes(boxes: None) -> None: ...


def served(place: Path, value: float = 1.0) -> str:
    """A directory that an engine may say it serves."""
    write(place / "model.safetensors", {"weight": np.full(8, value, np.float32)})
    (place / "config.json").write_text("{}")
    return str(place)


def digests(run: Path) -> set[str]:
    return {row.identity.engine.model_digest for row in Store(run / "trajectories")}


def test_every_row_names_the_weights_that_the_engine_says_it_serves(tmp_path: Path) -> None:
    make_task(tmp_path / "tasks")
    root = served(tmp_path / "served")
    with model_that_says(tmp_path, weights=root) as (model, engine):
        asked = ("run", tmp_path / "tasks", "--engine", engine.url, "--tokenizer", model)
        done = envkit(*asked, "--out", tmp_path / "out", "--samples", 2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(Store(tmp_path / "out/trajectories")) == 2
    assert digests(tmp_path / "out") == {weights_digest(Path(root))}
    shown = envkit("show", tmp_path / "out", "--id", "ordinary__000")
    assert weights_digest(Path(root))[:8] in shown.stdout


@pytest.mark.parametrize("root", ["", "/nowhere/model", "org/model", "no weights", "an adapter"])
def test_weights_that_cannot_be_read_here_are_left_unsaid(tmp_path: Path, root: str) -> None:
    make_task(tmp_path / "tasks")
    place = tmp_path / "served"
    if root == "no weights":
        root = served(place)
        (place / "model.safetensors").unlink()
    elif root == "an adapter":
        root = served(place)
        (place / "config.json").unlink()
    with model_that_says(tmp_path, weights=root) as (model, engine):
        asked = ("run", tmp_path / "tasks", "--engine", engine.url, "--tokenizer", model)
        done = envkit(*asked, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stdout + done.stderr
    assert digests(tmp_path / "out") == {""}


def test_damaged_weights_are_one_line_and_leave_no_run(tmp_path: Path) -> None:
    make_task(tmp_path / "tasks")
    root = Path(served(tmp_path / "served"))
    file = root / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-4])
    with model_that_says(tmp_path, weights=str(root)) as (model, engine):
        asked = ("run", tmp_path / "tasks", "--engine", engine.url, "--tokenizer", model)
        done = envkit(*asked, "--out", tmp_path / "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert "model.safetensors: is cut off" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_run_goes_on_with_its_weights_and_not_with_others(tmp_path: Path) -> None:
    make_task(tmp_path / "tasks")
    run, root = tmp_path / "out", served(tmp_path / "served")
    with model_that_says(tmp_path, weights=root) as (model, engine):
        asked = ("--engine", engine.url, "--tokenizer", model, "--out", run, "--samples", 2)
        killed("act", 2, "run", tmp_path / "tasks", *asked, "--concurrency", 1)
    before = weights_digest(Path(root))
    served(tmp_path / "served", value=2.0)
    with model_that_says(tmp_path, weights=root) as (_, engine):
        done = envkit("run", "--resume", run, "--engine", engine.url)
    assert (done.returncode, done.stdout) == (2, "")
    (said,) = done.stderr.strip().splitlines()
    assert f"the run began with weights {before[:12]}" in said
    with model_that_says(tmp_path) as (_, engine):
        done = envkit("run", "--resume", run, "--engine", engine.url)
    assert "serves weights that cannot be read here" in done.stderr
    served(tmp_path / "served")
    with model_that_says(tmp_path, weights=root) as (_, engine):
        done = envkit("run", "--resume", run, "--engine", engine.url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert digests(run) == {before}
    assert len(Store(run / "trajectories")) == 2
    assert envkit("run", "--resume", run).returncode == 0
