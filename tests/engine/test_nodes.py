# SPDX-License-Identifier: Apache-2.0
"""``rltrain fit`` on a Ray cluster of two nodes, given by its address; they share this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from envkit.trajectory.store import Store

from .policy import TASKS

CLUSTER = """\
import sys
from ray.cluster_utils import Cluster

args = {"num_cpus": 1, "object_store_memory": 200 * 2**20, "include_dashboard": False}
cluster = Cluster(initialize_head=True, head_node_args=args)
cluster.add_node(num_cpus=1, object_store_memory=200 * 2**20)
print(cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""
NODES, STEPS = 2, 2
PATIENCE_S = 600
SETTINGS = (
    *(f"run.steps={STEPS}", "batch.prompts=2", "batch.samples=4", "buffer.staleness=1"),
    *("rollout.concurrency=8", "rollout.engine_dtype=float32", "rollout.context_tokens=8192"),
    *("rollout.tokens_per_turn=256", "rollout.turns=10", "rollout.keep_trials=none"),
    *("evaluate.passes=3", "evaluate.context_tokens=8192", "gates.least_tokens=512"),
)


@pytest.fixture(scope="module")
def address(engine_python: Path) -> Iterator[str]:
    """Of a cluster of two nodes with a core each."""
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    with subprocess.Popen(
        [engine_python, "-c", CLUSTER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as cluster:
        assert cluster.stdin is not None
        assert cluster.stdout is not None
        yield cluster.stdout.readline().strip()
        cluster.stdin.close()


def test_each_node_of_a_cluster_has_a_crew_whose_trials_are_trained_on(
    engine_python: Path, checkpoint: Path, address: str, tmp_path: Path
) -> None:
    root = tmp_path / "run"
    words = ["tiny-cpu", "--policy", checkpoint, "--tasks", TASKS, "--out", root]
    words += ["--environment-python", sys.executable]
    cluster = (f"cluster.address={address}", "cluster.gpus_per_node=0")
    words += [word for each in (*SETTINGS, *cluster) for word in ("--set", each)]
    done = subprocess.run(
        [engine_python.with_name("rltrain"), "fit", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    stores = sorted(root.glob("nodes/*/trajectories"))
    assert [each.parent.name for each in stores] == [f"{number:03}" for number in range(NODES)]
    stored = [set(Store(each).ids) for each in stores]
    assert all(stored)
    assert not stored[0] & stored[1]
    lines = (root / "decisions.jsonl").read_text().splitlines()
    batches = [line for line in map(json.loads, lines) if line["decision"] == "batch"]
    trained = {
        f"{sample['group']}-{sample['place']:02}-{sample['attempt']}"
        for batch in batches
        for group in batch["groups"]
        for sample in group["samples"]
    }
    assert len(batches) == STEPS
    assert trained <= stored[0] | stored[1]
    assert all(trained & each for each in stored)
