# SPDX-License-Identifier: Apache-2.0
"""``rltrain fit`` samples and trains at once: real engine, boxes, servers, Ray; it is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from envkit.trajectory.store import Store
from envkit.trajectory.types import Trajectory

from .policy import TASKS

STEPS, PROMPTS, SAMPLES, STALENESS = 5, 2, 4, 2
KILLED_AFTER, ENGINE_KILLED_AFTER = 2, 3
"""Steps."""
PATIENCE_S = 900
SAID = "said"
SETTINGS = (
    *(f"run.steps={STEPS}", f"batch.prompts={PROMPTS}", f"batch.samples={SAMPLES}"),
    *("rollout.concurrency=8", "rollout.engine_dtype=float32", f"buffer.staleness={STALENESS}"),
    *("evaluate.passes=8", "evaluate.every_steps=0", "evaluate.context_tokens=8192"),
    *("rollout.context_tokens=8192", "rollout.tokens_per_turn=256", "rollout.turns=10"),
    *("checkpoint.every=1", "rollout.keep_trials=none"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A run whose driver was killed once, and whose engine once after that."""

    root: Path
    left: tuple[int, ...]
    """Processes of the killed run's engine that still ran a minute later."""
    said: str
    """On standard error, by the process that went on."""
    status: int

    @property
    def steps(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in lines(self.root / "metrics.jsonl")]

    @property
    def commit(self) -> dict[str, Any]:
        newest = max((self.root / "checkpoints").glob("step-*/commit.json"))
        return json.loads(newest.read_text())["live"]

    @property
    def rows(self) -> list[Trajectory]:
        (place,) = (self.root / "nodes").glob("*/trajectories")
        store = Store(place)
        return [store.read(head.trajectory_id) for head in store.heads]


@pytest.fixture(scope="module")
def ran(engine_python: Path, checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    root = tmp_path_factory.mktemp("live") / "run"
    words = ["tiny-cpu", "--policy", checkpoint, "--tasks", TASKS, "--out", root]
    words += ["--environment-python", sys.executable]
    words += [word for each in SETTINGS for word in ("--set", each)]
    first = fit(engine_python, root, *words)
    wait_for_step(root, KILLED_AFTER, first)
    engine = engine_of(root)
    assert engine
    first.kill()
    first.wait()
    left = still_running(engine)
    second = fit(engine_python, root, "--resume", root)
    wait_for_step(root, ENGINE_KILLED_AFTER, second)
    for pid in engine_of(root):
        os.kill(pid, signal.SIGKILL)
    second.wait(timeout=PATIENCE_S)
    return Ran(root=root, left=left, said=said(root), status=second.returncode)


def fit(python: Path, root: Path, *words: object) -> subprocess.Popen[str]:
    """The program; what it says is kept beside its run."""
    command = [str(python.with_name("rltrain")), "fit", *map(str, words)]
    with (root.parent / SAID).open("a") as file:
        return subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=file,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            cwd=root.parent,
        )


def said(root: Path) -> str:
    """By all processes of the run, on standard error."""
    return (root.parent / SAID).read_text()


def wait_for_step(root: Path, step: int, run: subprocess.Popen[str]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not any(json.loads(line)["step"] == step for line in lines(root / "metrics.jsonl")):
        assert run.poll() is None, said(root)
        assert time.monotonic() < until, f"step {step} was not taken"
        time.sleep(0.2)


def lines(file: Path) -> Iterator[str]:
    """Whole ones."""
    if file.exists():
        yield from (line for line in file.read_text().splitlines(keepends=True) if line[-1] == "\n")


def engine_of(root: Path) -> tuple[int, ...]:
    """Processes of the run's engine: those that write into its logs."""
    logs = str(root / "logs")
    out = [(int(fd.parts[2]), target(fd)) for fd in Path("/proc").glob("[0-9]*/fd/1")]
    return tuple(pid for pid, file in out if file.startswith(logs))


def target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


def still_running(pids: tuple[int, ...]) -> tuple[int, ...]:
    """Of these, after a minute at most."""
    until = time.monotonic() + 60
    while (left := tuple(pid for pid in pids if runs(pid))) and time.monotonic() < until:
        time.sleep(0.2)
    return left


def runs(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] != b"Z"


def test_a_run_that_was_killed_and_whose_engine_died_takes_all_its_steps(ran: Ran) -> None:
    assert ran.status == 0, ran.said
    assert [each["step"] for each in ran.steps] == list(range(1, STEPS + 1))
    assert "engine-0: " in ran.said
    assert "started anew" in ran.said


def test_nothing_of_an_engine_outlives_a_driver_that_was_killed(ran: Ran) -> None:
    assert ran.left == ()


def test_every_group_was_trained_on_once_in_the_weights_that_survive(ran: Ran) -> None:
    consumed = Counter(group for step in ran.commit["consumed"].values() for group in step)
    assert len(ran.commit["consumed"]) == STEPS
    assert set(consumed.values()) == {1}
    assert ran.commit["lineage"] == 1


def test_no_sample_was_older_than_the_bound_and_engine_and_trainer_agree(ran: Ran) -> None:
    for each in ran.steps:
        assert each["staleness/max"] <= STALENESS
        assert each["gate/mean"] < 1e-5, "float32 on both sides"
        assert each["gate/tokens"] >= 2048


def test_weights_changed_under_trials_that_went_on(ran: Ran) -> None:
    trained = [row for row in ran.rows if row.identity.group_id.startswith("g")]
    assert len({row.identity.trajectory_id for row in trained}) == len(trained)
    versions = [row.episode.stream.weight_version[row.episode.stream.loss_mask] for row in trained]
    assert any(len({*each.tolist()}) > 1 for each in versions)
    assert all((each >= 0).all() for each in versions if len(each))


def test_the_run_says_where_it_stands(ran: Ran, engine_python: Path) -> None:
    command = [engine_python.with_name("rltrain"), "status", ran.root, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    told = json.loads(done.stdout)
    assert (done.returncode, told["state"], told["step"]) == (0, "done", STEPS)
    assert told["lineages"] == 2
    assert [each["step"] for each in told["evaluations"]] == [0, STEPS]
