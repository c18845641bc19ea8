# SPDX-License-Identifier: Apache-2.0
"""Runs killed at exact points: nothing that ended is lost or repeated; `benchmarks/kill_run.py`
kills at every point there is."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from envkit.sandbox.reaper import remnants
from envkit.trajectory.store import Store

from ..trial.tiny import make_task
from .small import ended, envkit, killed, lines, model_that_says

pytestmark = pytest.mark.integration

TRIALS = 3


@pytest.fixture(autouse=True)
def needs_boxes(boxes: None) -> None: ...


def files(run: Path) -> dict[str, Any]:
    """Records and segments, by what names and what is in them."""
    found = [*run.glob("trials/*/envkit.json"), *run.glob("trajectories/segment-*.arrow")]
    return {
        str(path.relative_to(run)): (
            path.stat().st_ino,
            path.stat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest(),
        )
        for path in found
    }


def rows(run: Path) -> list[str]:
    store = run / "trajectories"
    return sorted(Store(store).ids) if store.exists() else []


def started(run: Path) -> set[str]:
    """Trials that the last process of a run started."""
    journal = lines(run / "journal.jsonl")
    last = max(n for n, line in enumerate(journal) if line["event"] == "began")
    return {line["trial"] for line in journal[last:] if line["event"] == "started"}


@pytest.mark.parametrize(
    ("point", "number"),
    [
        ("act", 2),
        ("record-after-rename", 2),
        ("segment-before-rename", 1),
        ("segment-after-rename", 1),
        ("ended-but-not-said", 2),
        ("report", 1),
    ],
)
def test_a_killed_run_goes_on_and_loses_and_repeats_nothing(
    tmp_path: Path, point: str, number: int
) -> None:
    make_task(tmp_path / "tasks")
    run, events = tmp_path / "out", tmp_path / "events"
    with model_that_says(tmp_path) as (model, engine):
        asked = ("--engine", engine.url, "--tokenizer", model, "--out", run, "--samples", TRIALS)
        words = ("run", tmp_path / "tasks", *asked, "--concurrency", 1, "--events", events)
        killed(point, number, *words)
        token = json.loads((run / "run.json").read_text())["run_token"]
        heard, before, stored = ended(events), files(run), rows(run)
        assert set(heard) <= set(stored)
        done = envkit("run", "--resume", run, "--events", events, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert (told["trials"], told["rewards"]["n"], told["rewards"]["mean"]) == (TRIALS, TRIALS, 1.0)
    names = [f"ordinary__00{n}" for n in range(TRIALS)]
    assert rows(run) == sorted(ended(events)) == names
    assert ended(events)[: len(heard)] == heard
    assert before.items() <= files(run).items()
    had_ended = {Path(name).parts[1] for name in before if name.startswith("trials")}
    assert started(run) == set(names) - had_ended
    segments = [Store(run / "trajectories").segments]
    assert sum(len(each.places) for store in segments for each in store) == TRIALS
    assert remnants(token) == []


def test_rows_of_a_torn_segment_are_stored_again_from_what_the_trials_left(tmp_path: Path) -> None:
    make_task(tmp_path / "tasks")
    run, events = tmp_path / "out", tmp_path / "events"
    with model_that_says(tmp_path) as (model, engine):
        asked = ("--engine", engine.url, "--tokenizer", model, "--out", run, "--samples", 2)
        words = ("run", tmp_path / "tasks", *asked, "--concurrency", 1, "--events", events)
        assert envkit(*words).returncode == 0
        (segment, *_) = sorted(run.glob("trajectories/segment-*.arrow"))
        segment.write_bytes(segment.read_bytes()[:100])
        (run / "report.json").unlink()
        done = envkit("run", "--resume", run, "--events", events, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    (line,) = told["trajectories"]["damage"]
    assert segment.name in line
    assert rows(run) == ["ordinary__000", "ordinary__001"]
    assert len(ended(events)) == 2
    assert started(run) == set()


def test_a_run_that_moved_its_engine_goes_on_with_the_new_one(tmp_path: Path) -> None:
    make_task(tmp_path / "tasks")
    run = tmp_path / "out"
    with model_that_says(tmp_path) as (model, engine):
        asked = ("--engine", engine.url, "--tokenizer", model, "--out", run)
        killed("act", 1, "run", tmp_path / "tasks", *asked)
    with model_that_says(tmp_path) as (_, engine):
        done = envkit("run", "--resume", run, "--engine", engine.url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert rows(run) == ["ordinary__000"]
    shutil.rmtree(run)
