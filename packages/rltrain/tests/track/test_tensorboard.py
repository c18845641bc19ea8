# SPDX-License-Identifier: Apache-2.0
"""Events are read back with what TensorBoard itself reads them with."""

import math
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from rltrain.track.boards import EVENTS, TensorBoard, open_boards

pytestmark = pytest.mark.trainer


def scalars(run: Path, name: str) -> list[tuple[int, float]]:
    read = EventAccumulator(str(run / EVENTS)).Reload()
    if name not in read.Tags()["scalars"]:
        return []
    return [(event.step, event.value) for event in read.Scalars(name)]


def test_numbers_are_scalars_of_their_steps(tmp_path: Path) -> None:
    told: list[str] = []
    boards = open_boards(tmp_path, told.append)
    boards.log(1, {"loss/value": 0.5, "length/max": 7, "loss/kl": None, "loss/tv": math.inf})
    boards.log(4, {"loss/value": 0.25, "length/max": 9})
    boards.close()
    assert told == []
    assert scalars(tmp_path, "loss/value") == [(1, 0.5), (4, 0.25)]
    assert scalars(tmp_path, "length/max") == [(1, 7.0), (4, 9.0)]
    assert scalars(tmp_path, "loss/kl") == scalars(tmp_path, "loss/tv") == []


def test_a_step_can_be_read_before_the_run_ends(tmp_path: Path) -> None:
    board = TensorBoard(tmp_path / EVENTS)
    board.log(1, {"loss/value": 0.5})
    try:
        assert scalars(tmp_path, "loss/value") == [(1, 0.5)]
    finally:
        board.close()


def test_a_resumed_run_shows_each_step_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for after, steps, value in ((None, (1, 2, 3, 4), 0.5), (2, (3, 4, 5), 0.25)):
        monkeypatch.setattr("time.time", lambda second=value: 1e9 - second * 40)
        board = TensorBoard(tmp_path / EVENTS, after)
        for step in steps:
            board.log(step, {"loss/value": value})
        board.close()
    assert scalars(tmp_path, "loss/value") == [(1, 0.5), (2, 0.5), (3, 0.25), (4, 0.25), (5, 0.25)]
