# SPDX-License-Identifier: Apache-2.0
"""A run that is killed anywhere goes on to the very weights, to the bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
import recorded

pytestmark = pytest.mark.trainer

PROGRAM = Path(__file__).with_name("killed.py")
HERE = (
    "in-the-optimizer-step",
    "after-the-optimizer-step",
    "numbers-logged",
    "shard-write",
    "commit-before-write",
    "commit-written",
    "commit",
    "older-taken-away",
    "first-checkpoint",
)
"""The others, and random moments, are killed at by ``benchmarks/kill_fit.py``."""
SETTINGS = (
    'policy.dtype="float32"',
    "policy.lora={rank=4, dropout=0.1}",
    "optimizer.learning_rate=1e-3",
    "optimizer.warmup_steps=4",
    "batch.prompts=2",
    "batch.micro_batch_tokens=200",
    "run.epochs=3",
    "run.deterministic=true",
    "checkpoint.every=2",
    "checkpoint.keep=2",
)
"""Dropout draws in every step, and the rate depends on how many were taken."""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    place = tmp_path_factory.mktemp("killed")
    model = recorded.policy(place / "policy")
    recorded.record(place / "store", model, recorded.Asked(groups=4, samples=4))
    cases = {
        "store": str(place / "store"),
        "settings": [*SETTINGS, f"policy.path={model}"],
        "points": HERE,
        "two_ranks": True,
    }
    (place / "cases.json").write_text(json.dumps(cases), "utf-8")
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(place / "cases.json"), str(place)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    logs = "".join(each.read_text("utf-8", "replace") for each in place.glob("*.log"))
    assert done.returncode == 0, done.stderr + logs
    return {each["name"]: each for each in json.loads(done.stdout)}


@pytest.mark.parametrize("point", [*HERE, "rank-dies", "goes-on-alone"])
def test_what_was_killed_goes_on_to_the_same_bits(
    found: dict[str, dict[str, Any]], point: str
) -> None:
    case = found[point]
    assert case["killed"], case
    assert case["resumed"] == 0, case
    assert case["same_weights"], case
    assert case["same_numbers"], case
    assert case["left"] == [], case


def test_steps_after_the_last_checkpoint_are_taken_again_and_no_others(
    found: dict[str, dict[str, Any]],
) -> None:
    assert found["numbers-logged"]["steps_logged"] == 4
    assert found["numbers-logged"]["resumed_at"] == 2
    assert found["commit-written"]["resumed_at"] == 2
    assert found["commit"]["resumed_at"] == 4
    assert found["first-checkpoint"]["resumed_at"] == 0
