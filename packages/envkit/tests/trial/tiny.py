# SPDX-License-Identifier: Apache-2.0
"""The smallest real task over the smallest real world, and real trials of it.

The agent must write ``done`` into ``/filesystem/done.txt`` (half the reward) and leave the final
answer ``forty-two`` (the other half). Nothing is installed, so a box of it starts at once.
"""

import asyncio
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from envkit.deadline import DEFAULT_BUDGETS, Budgets
from envkit.preflight.launcher import ForkServerLauncher
from envkit.preflight.types import Event, Leftover, RunOptions, TrialEnded, TrialSpec
from envkit.trial.record import TrialRecord

_PARTS = Path(__file__).parent / "faulty"

LIST = {"tool": "filesystem_server_list_files", "arguments": {"path": "/"}}
ANSWER = {"final_answer": "forty-two\n"}

_WORLD = """\
name = "tiny"
servers = ["filesystem_server", "code_execution_server"]
"""
_TASK = """\
artifacts = ["/filesystem"]

[task]
name = "envkit/{name}"
description = "Write one word into a file and answer with another"

[metadata]
world = "tiny"

[agent]
timeout_sec = {agent_s}

[verifier]
timeout_sec = {verifier_s}
environment_mode = "separate"

[verifier.environment]
network_mode = "no-network"
memory_mb = 512
storage_mb = {storage_mb}

[environment]
network_mode = "no-network"
memory_mb = {memory_mb}
storage_mb = {storage_mb}

[[environment.mcp_servers]]
name = "world"
transport = "streamable-http"
url = "http://127.0.0.1:8000/mcp/"
"""
_VERIFY = """\
#!/bin/bash
points=0
[ "$(cat /filesystem/done.txt 2>/dev/null)" = "done" ] && points=$((points + 1))
[ "$(cat /logs/artifacts/final_answer.txt 2>/dev/null)" = "forty-two" ] && points=$((points + 1))
rewards=(0.0 0.5 1.0)
printf '{"reward": %s}' "${rewards[points]}" > /logs/verifier/reward.json
"""
_SOLVE = """\
#!/bin/bash
echo done > /filesystem/done.txt
echo forty-two > /logs/artifacts/final_answer.txt
"""


def lend_parts(patch: pytest.MonkeyPatch) -> None:
    """Let the processes of trials import what goes wrong in them."""
    patch.setenv("PYTHONPATH", str(_PARTS), prepend=os.pathsep)


def run(code: str, *, expect_error: bool = False, **more: object) -> dict[str, object]:
    """A recorded call that runs ``code`` in the agent's box."""
    call: dict[str, object] = {"tool": "code_execution_server_code_exec"}
    call["arguments"] = {"code": code, **more}
    return {**call, "expect_error": True} if expect_error else call


DONE = run("echo done > /filesystem/done.txt")
ORDINARY: tuple[Mapping[str, object], ...] = (LIST, DONE, ANSWER)
"""Earns 1.0."""


def make_task(
    tasks: Path,
    name: str = "ordinary",
    calls: Sequence[Mapping[str, object]] = ORDINARY,
    *,
    memory_mb: int = 512,
    storage_mb: int = 256,
    agent_s: float = 120,
    verifier_s: float = 60,
    secret: str = "",
    verify: str = _VERIFY,
) -> Path:
    """A task directory under ``tasks``; the world is made beside it when it is not there."""
    _make_world(tasks / "worlds/tiny")
    task = tasks / name
    settings = {"memory_mb": memory_mb, "storage_mb": storage_mb}
    toml = _TASK.format(name=name, agent_s=agent_s, verifier_s=verifier_s, **settings)
    _write(task / "task.toml", toml)
    _write(task / "instruction.md", "Write `done` into done.txt and answer forty-two.\n")
    _write(task / "environment/Dockerfile", "FROM scratch\n")
    _write(task / "solution/calls.jsonl", "".join(json.dumps(call) + "\n" for call in calls))
    _write(task / "solution/solve.sh", f"{_SOLVE}# {secret}\n")
    _write(task / "tests/test.sh", f"{verify}# {secret}\n")
    return task


def _make_world(world: Path) -> None:
    if (world / "world.toml").exists():
        return
    _write(world / "world.toml", _WORLD)
    _write(world / "apps_data/mail/secret.txt", "the inbox of a world\n")
    _write(world / "filesystem/note.txt", "the word is done, the answer forty-two\n")
    _write(world / "filesystem/a_long.txt", "of more bytes than a pipe can hold at once\n" * 10_000)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@dataclass(kw_only=True)
class Ran:
    """What a launcher's run came to."""

    records: dict[str, TrialRecord] = field(default_factory=dict[str, TrialRecord])
    events: list[Event] = field(default_factory=list[Event])
    leftovers: Sequence[Leftover] = ()

    def __getitem__(self, trial_id: str) -> TrialRecord:
        return self.records[trial_id]


def spec(task: Path, out: Path, trial_id: str = "", agent: str = "replay") -> TrialSpec:
    """One trial of ``task``."""
    trial_id = trial_id or f"{task.name}__000"
    return TrialSpec(
        trial_id=trial_id, task_dir=task, sample=0, agent=agent, out_dir=out, env="local"
    )


def launcher(
    out: Path,
    *,
    env: str = "local",
    concurrency: int = 4,
    budgets: Budgets = DEFAULT_BUDGETS,
    **more: Any,
) -> ForkServerLauncher:
    """A launcher for one run with a token of its own."""
    out.mkdir(parents=True, exist_ok=True)
    options: dict[str, Any] = {"barrier": False, **more}
    token = secrets.token_hex(8)
    return ForkServerLauncher(
        env,
        RunOptions(
            concurrency=concurrency, out_dir=out, run_token=token, budgets=budgets, **options
        ),
    )


def run_trials(launches: ForkServerLauncher, specs: Sequence[TrialSpec]) -> Ran:
    """Run every spec to its end, on a loop of its own."""
    return asyncio.run(collect(launches, specs))


async def collect(launches: ForkServerLauncher, specs: Sequence[TrialSpec]) -> Ran:
    """Run every spec to its end; the leftovers are counted when the run is over."""
    ran = Ran()
    async for event in launches.run(specs):
        ran.events.append(event)
        if isinstance(event, TrialEnded):
            ran.records[event.record.trial_id] = event.record
    ran.leftovers = launches.leftovers()
    return ran
