# SPDX-License-Identifier: Apache-2.0
"""Trials of the agent that a model drives: every stop, every budget, and whose fault a fault is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harbor.utils.trajectory_validator import TrajectoryValidator

from envkit.trajectory.types import Kind, Stop

from .scripted_model import DONE, Play, Played, code, play_all

pytestmark = pytest.mark.integration

ANSWER = "forty-two"

PLAYS = {
    "final": Play(turns=[[DONE], ANSWER]),
}


@pytest.fixture(scope="module")
def played(boxes: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Played]:
    return play_all(tmp_path_factory.mktemp("played"), PLAYS)


def test_a_task_is_done(played: dict[str, Played]) -> None:
    mine = played["final"]
    assert mine.record.fault is None
    assert (mine.record.reward, mine.record.reward_valid) == (1.0, True)
    assert (mine.episode.stop, mine.episode.final_answer) == (Stop.FINAL, ANSWER)
