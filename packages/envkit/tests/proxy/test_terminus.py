# SPDX-License-Identifier: Apache-2.0
"""Harbor's own Terminus-2 in a real trial, through the proxy."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from envkit.sandbox.availability import availability
from envkit.trajectory.types import Kind, Stop

from ..trial.tiny import launcher, make_task, run_trials, spec
from .small import Proxied, texts

HERE = Path(__file__).parent / "foreign"


def says(*keystrokes: str, done: bool = False) -> str:
    """A turn as Terminus-2 reads it."""
    commands = [{"keystrokes": each, "duration": 0.2} for each in keystrokes]
    turn = {"analysis": "Grüße", "plan": "go on", "commands": commands, "task_complete": done}
    return json.dumps(turn, ensure_ascii=False)


def test_a_trial_of_terminus_2_is_one_stream_that_may_be_trained_on(
    proxy: Proxied, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = availability()
    if not here.ok:
        pytest.skip(f"missing tool: {here.line()}")
    if shutil.which("tmux") is None:
        pytest.skip("not run: tmux absent")
    monkeypatch.setenv("PYTHONPATH", str(HERE), prepend=os.pathsep)
    said = [
        says("echo done > /filesystem/done.txt\n"),
        says("mkdir -p /logs/artifacts; echo forty-two > /logs/artifacts/final_answer.txt\n"),
        says(done=True),
        says(done=True),
    ]
    proxy.play(*said)
    mine = spec(
        make_task(tmp_path / "tasks"), tmp_path / "out", "terminus", "terminus_here:Terminus"
    )
    mine = replace(mine, agent_args={"base": f"{proxy.url}/t/terminus/v1", "max_turns": 8})
    record = run_trials(launcher(tmp_path / "out"), [mine])["terminus"]
    assert record.reward == 1.0, record
    (told,) = proxy.end("terminus", reward=record.reward, reward_valid=record.reward_valid)
    assert told["reward_valid"], told
    row = proxy.row("terminus")
    assert (row.episode.stop, row.episode.used.turns) == (Stop.FINAL, len(said))
    stop = proxy.speaks.template.decode(proxy.speaks.template.end_of_turn(-1))
    assert texts(proxy.speaks, row, Kind.MODEL) == [f"{each}{stop}" for each in said]
