# SPDX-License-Identifier: Apache-2.0
"""Directories of runs as a loop leaves them, with numbers that are made up."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rltrain.track.catalogue import TOPICS, UNDRAWN, names_of
from rltrain.track.metrics import METRICS, Metrics

NAMES = sorted(
    {name for topic in TOPICS for each in topic.drawings for name in names_of(each)}
    | UNDRAWN - {"time"}
)
MANIFEST = {"rltrain": "0.1.0", "started": "2026-02-11T08:14:03Z", "seed": 7, "policy": "tiny"}


def numbers(step: int) -> dict[str, float]:
    """Every number that has a place of its own."""
    return {name: 0.01 * step + 0.001 * n for n, name in enumerate(NAMES)}


def run(
    path: Path,
    steps: Mapping[int, Mapping[str, float | None]],
    manifest: Mapping[str, Any] = MANIFEST,
    settings: str = "[run]\nseed = 7\n",
) -> Path:
    """A directory that holds these steps."""
    path.mkdir(exist_ok=True)
    with Metrics(path / METRICS, clock=lambda: 1.77e9) as metrics:
        for step, told in steps.items():
            metrics.log(step, told)
    (path / "run.json").write_text(json.dumps(manifest))
    (path / "config.toml").write_text(settings)
    return path
