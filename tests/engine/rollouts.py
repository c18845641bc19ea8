# SPDX-License-Identifier: Apache-2.0
"""Trials of the tiny policy in real boxes, its tokens sampled by the real engine."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envkit.preflight.launcher import ForkServerLauncher
from envkit.preflight.types import RunOptions, TrialEnded, TrialSpec
from envkit.trajectory.episode_file import EPISODE_NAME, read_episode
from envkit.trajectory.types import Episode, Identity
from envkit.trial.record import TrialRecord

from .policy import FAMILIES, TASKS

AGENT = "envkit.agent.model:ModelAgent"
AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """One trial, and what its agent left."""

    record: TrialRecord
    family: str
    identity: Identity
    episode: Episode

    @property
    def good_calls(self) -> int:
        """How many tool calls succeeded."""
        return sum(each.ok for each in self.episode.calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is run: ``trials`` over the families and the tasks in turn."""

    name: str
    """Begins the ids of its trials."""
    trials: int
    limits: Mapping[str, Any]


def run(out: Path, specs: Sequence[TrialSpec]) -> list[Rollout]:
    """Run all of them through the launcher that a preflight runs trials by."""
    out.mkdir(parents=True, exist_ok=True)
    records = asyncio.run(_collect(out, specs))
    return [_rollout(records[spec.trial_id], spec) for spec in specs]


def specs_of(asked: Asked, out: Path, url: str, checkpoint: Path) -> list[TrialSpec]:
    """Its trials."""
    tasks = sorted(each for each in TASKS.iterdir() if (each / "task.toml").exists())
    pairs = itertools.cycle(itertools.product(tasks, FAMILIES))
    return [
        trial(f"{asked.name}-{family}", task, number, out, url, checkpoint / family, asked.limits)
        for number, (task, family) in zip(range(asked.trials), pairs, strict=False)
    ]


def trial(
    name: str,
    task: Path,
    sample: int,
    out: Path,
    url: str,
    tokenizer: Path,
    limits: Mapping[str, Any],
    **more: Any,
) -> TrialSpec:
    """One trial of the model at ``url``; ``more`` are further settings of its agent."""
    settings = {"engine": url, "tokenizer": str(tokenizer), "limits": dict(limits), **more}
    return TrialSpec(
        trial_id=f"{name}-{task.name}__{sample:03}",
        task_dir=task,
        sample=sample,
        agent=AGENT,
        out_dir=out,
        env="local",
        agent_args=settings,
    )


async def _collect(out: Path, specs: Sequence[TrialSpec]) -> dict[str, TrialRecord]:
    options = RunOptions(
        concurrency=AT_ONCE, out_dir=out, run_token=secrets.token_hex(8), barrier=False
    )
    ended = {}
    async for event in ForkServerLauncher("local", options).run(specs):
        if isinstance(event, TrialEnded):
            ended[event.record.trial_id] = event.record
    return ended


def _rollout(record: TrialRecord, spec: TrialSpec) -> Rollout:
    assert record.fault is None, f"{record.trial_id}: {record.fault}"
    identity, episode = read_episode(record.trial_dir / "agent" / EPISODE_NAME)
    family = Path(spec.agent_args["tokenizer"]).name
    return Rollout(record=record, family=family, identity=identity, episode=episode)


@contextlib.contextmanager
def recording(upstream: str, file: Path) -> Iterator[str]:
    """The recorder before an engine, in a process of its own; gives its URL."""
    program = [sys.executable, str(Path(__file__).with_name("recorder.py")), upstream, str(file)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as recorder:
        assert recorder.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(recorder.stdout.readline())}"
        finally:
            recorder.terminate()


def calls_of(rollout: Rollout) -> list[dict[str, Any]]:
    """The agent's call log."""
    log = rollout.record.trial_dir / "agent/calls.jsonl"
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    return [json.loads(line) for line in lines]
