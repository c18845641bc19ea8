# SPDX-License-Identifier: Apache-2.0
"""Runs of tests, prepared as a command prepares them, and what hears of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rltrain.config.read import read
from rltrain.loop.prepare import Again, New, prepared
from rltrain.loop.run import run
from rltrain.loop.settings import Settings
from rltrain.loop.types import Ended


@dataclass
class Heard:
    """All that was told."""

    lines: list[str] = field(default_factory=list[str])
    steps: list[dict[str, float]] = field(default_factory=list[dict[str, float]])

    def line(self, text: str) -> None:
        self.lines.append(text)

    def step(self, step: int, steps: int, numbers: dict[str, float]) -> None:
        self.steps.append(numbers)


def settings(policy: Path, *given: str) -> Settings:
    """Small batches of a small policy."""
    small = ("batch.prompts=4", "batch.micro_batch_tokens=400", "run.deterministic=true")
    own = (f"policy.path={policy}", 'policy.dtype="float32"', "optimizer.learning_rate=1e-3")
    return read(Settings, None, [*own, *small, *given])


def begun(policy: Path, store: Path, root: Path, *given: str, heard: Any = None) -> Ended:
    """A new run, to its end."""
    asked = New(settings=settings(policy, *given), trajectories=store, root=root)
    return run(prepared(asked, lambda *_: None), heard or Heard())


def resumed(root: Path, heard: Any = None) -> Ended:
    """The same run, gone on with."""
    return run(prepared(Again(root=root), lambda *_: None), heard or Heard())
