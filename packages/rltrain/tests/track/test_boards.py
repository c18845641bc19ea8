# SPDX-License-Identifier: Apache-2.0
"""W&B cannot be reached from a test, so a module of its name stands in and keeps the calls."""

import json
import math
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from rltrain.track.boards import NO_TENSORBOARD, Board, Boards, open_boards

STAND_IN = """
import json, os

class Run:
    def __init__(self, asked):
        self.path = os.path.join(asked["dir"], "calls.jsonl")
        self.keep("init", asked)

    def keep(self, name, what):
        with open(self.path, "a") as file:
            file.write(json.dumps([name, what]) + "\\n")

    def log(self, data, step=None):
        self.keep("log", [data, step])

    def finish(self):
        self.keep("finish", None)

def init(*, project, mode, dir, group, name, config):
    return Run(dict(project=project, mode=mode, dir=dir, group=group, name=name, config=config))
"""


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.delenv("WANDB_PROJECT", raising=False)


@pytest.fixture
def wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A run's directory, where a module with the name of W&B can be imported."""
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "wandb.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(modules)
    yield tmp_path
    sys.modules.pop("wandb", None)


def calls(run: Path) -> list[Any]:
    path = run / "calls.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def used(run: Path, after: int | None = None) -> list[str]:
    """Everything said while two steps are logged."""
    told: list[str] = []
    boards = open_boards(run, told.append, {"seed": 3}, after)
    boards.log(1, {"loss/value": 0.5, "loss/kl": None, "loss/tv": math.nan})
    boards.log(2, {"loss/value": 0.25})
    boards.close()
    return [line for line in told if line != NO_TENSORBOARD]


def test_wandb_is_given_a_run_its_rows_and_its_end(
    wandb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_PROJECT", "office")
    assert used(wandb) == []
    asked = {"dir": str(wandb), "group": wandb.name, "name": wandb.name, "config": {"seed": 3}}
    assert calls(wandb) == [
        ["init", {"project": "office", "mode": "offline", **asked}],
        ["log", [{"loss/value": 0.5}, 1]],
        ["log", [{"loss/value": 0.25}, 2]],
        ["finish", None],
    ]


def test_wandb_has_the_mode_that_the_user_set(wandb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "online")
    used(wandb)
    assert calls(wandb)[0][1]["mode"] == "online"
    assert calls(wandb)[0][1]["project"] == "rltrain"


def test_a_resumed_run_is_another_one_of_the_same_group(
    wandb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    used(wandb, after=12)
    asked = calls(wandb)[0][1]
    assert (asked["group"], asked["name"]) == (wandb.name, f"{wandb.name} after step 12")


def test_wandb_is_left_alone_where_the_user_set_nothing(wandb: Path) -> None:
    assert used(wandb) == []
    assert calls(wandb) == []


@pytest.mark.parametrize("directory", [False, True])
def test_absence_of_wandb_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directory: bool
) -> None:
    if directory:  # what an offline run leaves behind is no module
        (tmp_path / "wandb").mkdir()
        monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert used(tmp_path) == []


def test_wandb_that_cannot_begin_is_told_of_in_one_line(
    wandb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    (wandb / "modules" / "wandb.py").write_text("raise RuntimeError('no\\nroom')")
    assert used(wandb) == ["Wandb fails and is left out: RuntimeError: no room"]


def test_absence_of_tensorboard_is_one_line_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "rltrain.track.boards.find_spec",
        lambda name: None if name == "tensorboard" else find_spec(name),
    )
    told: list[str] = []
    boards = open_boards(tmp_path, told.append)
    boards.log(1, {"loss/value": 1.0})
    boards.close()
    assert told == [NO_TENSORBOARD]
    assert list(tmp_path.iterdir()) == []


class Kept:
    """A board that keeps what it is given, and fails at one step."""

    def __init__(self, fails_at: int = -1) -> None:
        self.steps: list[int] = []
        self.closed = 0
        self.fails_at = fails_at

    def log(self, step: int, numbers: object) -> None:
        if step == self.fails_at:
            raise OSError("No space left on device")
        self.steps.append(step)

    def close(self) -> None:
        self.closed += 1


def test_a_board_that_fails_is_left_out_and_the_others_go_on() -> None:
    told: list[str] = []
    weak, good = Kept(fails_at=2), Kept()
    boards: Board = Boards([weak, good], told.append)
    for step in (1, 2, 3):
        boards.log(step, {})
    boards.close()
    boards.close()
    assert (weak.steps, good.steps, good.closed) == ([1], [1, 2, 3], 1)
    assert told == ["Kept fails and is left out: OSError: No space left on device"]
