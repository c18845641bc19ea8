# SPDX-License-Identifier: Apache-2.0
"""Samples come out of stores that others write to meanwhile, and each is read once."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from envkit.trajectory.errors import NoSuchRow
from envkit.trajectory.types import FaultNote, Trajectory
from envkit.trajectory.writer import Writer
from rltrain.rollout import crew
from rltrain.rollout.crew import ShelfHost

from ..batch.made import trajectory


@contextmanager
def writing(place: Path) -> Iterator[Writer]:
    with Writer.open(place, clock=lambda: 0.0) as writer:
        yield writer


def write(writer: Writer, *rows: Trajectory) -> None:
    for row in rows:
        writer.append(row)
    writer.commit()


def test_what_is_written_after_a_store_was_opened_is_found(tmp_path: Path) -> None:
    shelf = ShelfHost()
    with writing(tmp_path) as writer:
        write(writer, trajectory("a"))
        assert [each.trajectory_id for each in shelf.samples([(tmp_path, "a")])] == ["a"]
        write(writer, trajectory("b"))
        found = shelf.samples([(tmp_path, "b"), (tmp_path, "a"), (tmp_path, "b")])
    assert [each.trajectory_id for each in found] == ["b", "a", "b"]


def test_a_row_that_is_not_there_is_named(tmp_path: Path) -> None:
    with writing(tmp_path) as writer:
        write(writer, trajectory("a"))
    with pytest.raises(NoSuchRow, match="b"):
        ShelfHost().samples([(tmp_path, "b")])


def test_only_so_many_tokens_are_kept_and_all_are_still_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crew, "KEPT_TOKENS", 1)
    with writing(tmp_path) as writer:
        write(writer, *(trajectory(name) for name in "abc"))
    shelf = ShelfHost()
    found = shelf.samples([(tmp_path, name) for name in "abcab"])
    assert [each.trajectory_id for each in found] == [*"abcab"]


def test_what_is_stored_is_told_as_its_crew_would_have(tmp_path: Path) -> None:
    good = trajectory("good")
    note = FaultNote(code="BoxOutOfMemory", owner="model", phase="act", message="its own command")
    own = trajectory("own")
    own = replace(own, outcome=replace(own.outcome, fault=note))
    lost = trajectory("lost")
    lost = replace(lost, outcome=replace(lost.outcome, reward_valid=False, loss_live=False))
    with writing(tmp_path) as writer:
        write(writer, good, own, lost)
    told = {each.trial_id: each.ended for each in ShelfHost().stored(tmp_path)}
    assert {name: each.outcome for name, each in told.items()} == {
        "good": "valid",
        "own": "own",
        "lost": "fault",
    }
    assert told["good"].reward == good.outcome.reward
    assert told["lost"].reward is None
    mask = good.episode.stream.loss_mask
    assert told["good"].sampled_tokens == mask.sum()
    assert told["good"].oldest == good.episode.stream.weight_version[mask].min()


def test_a_place_without_a_store_holds_nothing(tmp_path: Path) -> None:
    assert ShelfHost().stored(tmp_path / "none") == []
