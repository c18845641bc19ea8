# SPDX-License-Identifier: Apache-2.0
"""A trial has ended when its row is on the disk: not before, and not twice."""

from __future__ import annotations

import asyncio
import math
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from envkit.fault import HarnessError
from envkit.preflight.types import Event, Plan, TrialEnded, TrialPhase
from envkit.run.events import Events
from envkit.run.rows import Ground
from envkit.run.sink import Sink
from envkit.run.storing import Storing
from envkit.trajectory.episode_file import write_episode
from envkit.trajectory.store import Store
from envkit.trajectory.types import Identity, Limits, Stop
from envkit.trajectory.writer import Writer
from envkit.trial.record import TrialRecord, write_record

from ..preflight.conftest import Scripted, make_plan_of, make_record
from ..trajectory.rows import trajectory
from .small import ended

NOBODY = Identity(trajectory_id="", group_id="", sample=0, task="", harness="envkit mcp")


class Place:
    """A run's directory with what its trials left."""

    def __init__(self, root: Path) -> None:
        self.store, self.events = root / "store", root / "events"
        self.plan: Plan = make_plan_of(root, ["task"], samples=4)
        self.records = [make_record(spec) for spec in self.plan.specs]
        for number, record in enumerate(self.records):
            self.leave(record, number)

    def leave(self, record: TrialRecord, seed: int) -> None:
        row = trajectory(record.trial_id, seed=seed)
        (record.trial_dir / "agent").mkdir(parents=True)
        write_episode(record.trial_dir / "agent/episode.bin", row.identity, row.episode)
        write_record(record)

    def sink(self, writer: Writer) -> Sink:
        digests = {record.trial_id: "d" * 64 for record in self.records}
        ground = Ground(identity=NOBODY, limits=Limits(), tasks=digests)
        return Sink(writer, ground, Events(self.events, "run"))

    @property
    def names(self) -> list[str]:
        return [record.trial_id for record in self.records]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def writer(place: Place) -> Iterator[Writer]:
    with Writer.open(place.store) as writer:
        yield writer


def told(place: Place, writer: Writer, launcher: Scripted) -> list[Event]:
    """What a run says; every trial is in the store by the time it is said to have ended."""

    async def listen() -> list[Event]:
        heard: list[Event] = []
        async for event in Storing(launcher, place.sink(writer)).run(place.plan.specs):
            if isinstance(event, TrialEnded):
                assert event.record.trial_id in Store(place.store)
                assert event.record.trial_id in ended(place.events)
            heard.append(event)
        return heard

    return asyncio.run(listen())


def test_a_trial_is_said_to_have_ended_once_its_row_is_in_the_store(
    place: Place, writer: Writer
) -> None:
    heard = told(place, writer, Scripted())
    assert [e.record.trial_id for e in heard if isinstance(e, TrialEnded)] == place.names
    assert sum(isinstance(event, TrialPhase) for event in heard) == 4
    for row, seed in zip(Store(place.store), range(4), strict=True):
        left = trajectory(row.identity.trajectory_id, seed=seed).episode
        assert row.episode.stream.token_ids.tolist() == left.stream.token_ids.tolist()
        assert row.identity.task_digest == "d" * 64
        assert (row.identity.group_id, row.identity.sample) == ("task", seed)
        assert (row.outcome.reward, row.outcome.loss_live) == (1.0, True)


def test_trials_that_end_together_are_written_together(place: Place, writer: Writer) -> None:
    told(place, writer, Scripted())
    assert len(Store(place.store).segments) == 1


def test_what_had_ended_is_stored_when_a_run_is_closed(place: Place, writer: Writer) -> None:
    launcher = Scripted(hang_after=2)

    async def close() -> None:
        async def listen() -> None:
            async for _ in Storing(launcher, place.sink(writer)).run(place.plan.specs):
                pass

        listening = asyncio.create_task(listen())
        await launcher.waiting.wait()
        listening.cancel()
        await asyncio.wait({listening})

    asyncio.run(close())
    assert launcher.closed
    assert list(Store(place.store).ids) == ended(place.events) == place.names[:2]


def test_a_store_that_cannot_be_written_ends_the_run_and_loses_nothing(
    place: Place, writer: Writer
) -> None:
    shutil.rmtree(place.store)
    launcher = Scripted(hang_after=3)
    with pytest.raises(HarnessError, match="make room there, then resume the run"):
        told(place, writer, launcher)
    assert launcher.closed
    assert ended(place.events) == []
    place.store.mkdir()
    assert place.sink(writer).catch_up(place.records) == 4
    assert sorted(Store(place.store).ids) == place.names


def test_an_error_of_the_launcher_is_raised_once_what_ended_is_stored(
    place: Place, writer: Writer
) -> None:
    launcher = Scripted(script={place.names[2]: HarnessError("the fork server is gone")})
    with pytest.raises(HarnessError, match="the fork server is gone"):
        told(place, writer, launcher)
    assert list(Store(place.store).ids) == place.names[:2]


def test_what_ended_before_is_stored_once_and_counted(place: Place, writer: Writer) -> None:
    first = place.sink(writer)
    assert first.catch_up(place.records[:2]) == 2
    again = place.sink(writer)
    assert again.catch_up(place.records) == 2
    assert len(first.figures) == 2
    assert len(again.figures) == 4
    assert ended(place.events) == list(Store(place.store).ids) == place.names
    assert again.damage == []


def test_a_damaged_row_is_named_and_not_run_or_written_again(place: Place, writer: Writer) -> None:
    place.sink(writer).catch_up(place.records)
    (segment,) = Store(place.store).segments
    data = bytearray(segment.file.read_bytes())
    where = segment.places[1]
    data[where.start + where.length // 2] ^= 1
    segment.file.write_bytes(bytes(data))
    again = place.sink(writer)
    assert again.catch_up(place.records) == 0
    (line,) = again.damage
    assert place.names[1] in line
    assert len(again.figures) == 3


def test_a_row_that_says_what_cannot_be_is_named_and_costs_no_other(
    place: Place, writer: Writer
) -> None:
    place.records[1] = replace(place.records[1], reward=math.inf)
    sink = place.sink(writer)
    assert sink.catch_up(place.records) == 4
    (line,) = sink.damage
    assert place.names[1] in line
    assert "reward" in line
    rows = list(Store(place.store))
    assert [row.identity.trajectory_id for row in rows] == place.names
    assert [len(row.episode.stream.token_ids) > 0 for row in rows] == [True, False, True, True]
    outcome = rows[1].outcome
    assert (outcome.reward, outcome.reward_valid, outcome.loss_live) == (None, False, False)
    assert outcome.fault is not None
    assert (outcome.fault.code, outcome.fault.owner) == ("BrokenInvariant", "harness")


def test_a_trial_whose_record_was_not_kept_has_no_row(place: Place, writer: Writer) -> None:
    """A process that resumes the run would run it again, and find its row there."""
    (place.records[1].trial_dir / "envkit.json").unlink()
    place.sink(writer).catch_up(place.records)
    assert list(Store(place.store).ids) == [place.names[n] for n in (0, 2, 3)]


def test_a_trial_without_an_episode_has_a_row_without_tokens_or_a_valid_reward(
    place: Place, writer: Writer
) -> None:
    (place.records[0].trial_dir / "agent/episode.bin").unlink()
    place.sink(writer).catch_up(place.records)
    row = Store(place.store).read(place.names[0])
    assert len(row.episode.stream.token_ids) == 0
    assert (row.episode.stop, row.outcome.reward_valid) == (Stop.FAULT, False)
    assert row.identity.harness == "envkit mcp"


def test_an_episode_that_is_not_what_was_written_makes_no_reward_valid(
    place: Place, writer: Writer
) -> None:
    path = place.records[0].trial_dir / "agent/episode.bin"
    path.write_bytes(path.read_bytes()[:-9] + b"*" * 9)
    place.sink(writer).catch_up([replace(place.records[0])])
    row = Store(place.store).read(place.names[0])
    assert (row.outcome.reward, row.outcome.reward_valid) == (1.0, False)
    assert row.outcome.fault is not None
    assert row.outcome.fault.code == "Damaged"
