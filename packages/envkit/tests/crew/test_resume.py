# SPDX-License-Identifier: Apache-2.0
"""Trials that were under way when their crew was killed go on, or say that they start over."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from envkit.agent.types import CallRequest
from envkit.crew.types import Begun, CrewEvent, Ended, Gauges, Phase, Ready, Restarted
from envkit.trajectory.store import Store
from envkit.trajectory.types import Kind, Trajectory

from ..engines.scripted import Order, Scripted
from ..run.small import ANSWER, DONE, EXEC, model_that_says
from ..trial.tiny import make_task
from .small import FOREVER, Heard, Yard, heard, lost, play, soon

pytestmark = pytest.mark.integration

SEES = CallRequest(name=EXEC, arguments={"code": "cat /filesystem/note.txt"})
DRAWS = CallRequest(
    name=EXEC,
    arguments={"code": "cat /proc/sys/kernel/random/uuid; echo done > /filesystem/done.txt"},
)
"""Comes to something else each time."""


@pytest.fixture(autouse=True)
def needs_boxes(boxes: None) -> None: ...


@contextmanager
def served(home: Path, turns: list[CallRequest | str]) -> Generator[tuple[Yard, Scripted]]:
    """A task, and an engine whose model says this."""
    make_task(home / "tasks")
    with model_that_says(home, turns) as (model, engine):
        yield Yard(home=home, model=model, engine=engine.url), engine


async def asked(engine: Scripted, turn: int) -> None:
    """Wait until the engine was asked for a turn."""
    await soon(lambda: turn in turns(engine))


def turns(engine: Scripted) -> list[int]:
    """Turns that were asked for, in order."""
    return [each["turn"] for each in engine.seen() if each.get("body", {}).get("model")]


def cut_off(yard: Yard, engine: Scripted, turn: int) -> None:
    """A trial whose crew is killed as its engine samples a turn."""
    engine.order(Order(fault="silent", turn=turn, times=1))

    async def work(crew: Heard) -> None:
        await crew.crew.begin(yard.order("a"))
        await asked(engine, turn)
        os.kill(crew.crew.ready.pid, signal.SIGKILL)

    play(lost(yard.options(), work))


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def gone_on(yard: Yard, **more: Any) -> tuple[Ready, list[CrewEvent], Trajectory]:
    """What the trial comes to in another crew; it has another name there."""

    async def work() -> tuple[Ready, list[CrewEvent]]:
        async with heard(yard.options()) as crew:
            ready = crew.crew.ready
            order = yard.order("again", resume_from=ready.resumable["a"], **more)
            await crew.crew.begin(order)
            await crew.ends(1)
            return ready, [each for each in crew.events if not isinstance(each, Gauges | Phase)]

    ready, events = play(work())
    return ready, events, Store(yard.root / "trajectories").read("again")


def test_a_trial_goes_on_where_it_was_and_samples_nothing_twice(tmp_path: Path) -> None:
    with served(tmp_path, [SEES, DONE, ANSWER]) as (yard, engine):
        engine.set_version("1")
        cut_off(yard, engine, turn=2)
        engine.set_version("2")
        ready, events, row = gone_on(yard)
        assert turns(engine) == [0, 1, 2, 2]
    assert ready.cut_off == ("a",)
    assert [type(each) for each in events] == [Begun, Ended]
    assert isinstance(events[-1], Ended)
    assert (events[-1].outcome, events[-1].reward) == ("valid", 1.0)  # what it did was done again
    assert (events[-1].oldest, events[-1].newest, events[-1].turns) == (1, 2, 3)
    stream = row.episode.stream
    models = [each for each in stream.segments if each.kind is Kind.MODEL]
    versions = [set(stream.weight_version[each.start : each.stop].tolist()) for each in models]
    assert versions == [{1}, {1}, {2}]
    assert np.isfinite(stream.logprobs[stream.loss_mask]).all()
    starts = [each.started_s for each in row.episode.requests]
    ends = [each.started_s + each.seconds for each in row.episode.requests]
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))
    assert row.episode.used.own_s >= sum(each.seconds for each in row.episode.requests) * 0.5


def test_a_trial_can_go_on_twice(tmp_path: Path) -> None:
    with served(tmp_path, [SEES, DONE, ANSWER]) as (yard, engine):
        cut_off(yard, engine, turn=1)
        engine.order(Order(fault="silent", turn=2, times=1))

        async def work(crew: Heard) -> None:
            ready = crew.crew.ready
            await crew.crew.begin(yard.order("a", resume_from=ready.resumable["a"]))
            await asked(engine, 2)
            os.kill(ready.pid, signal.SIGKILL)

        play(lost(yard.options(), work))
        _, events, _ = gone_on(yard)
        assert turns(engine) == [0, 1, 1, 2, 2]
    assert [type(each) for each in events] == [Begun, Ended]


def test_a_trial_whose_call_was_under_way_starts_over_and_says_so(tmp_path: Path) -> None:
    with served(tmp_path, [DONE, FOREVER]) as (yard, engine):

        async def work(crew: Heard) -> None:
            await crew.crew.begin(yard.order("a"))
            await asked(engine, 1)
            journal = yard.root / "trials/a/agent/turns.journal"
            await soon(lambda: b"call-1-1" in journal.read_bytes())
            os.kill(crew.crew.ready.pid, signal.SIGKILL)

        play(lost(yard.options(), work))
        before = turns(engine)
        limits = {"limits": {"turns": 1}}
        _, events, row = gone_on(yard, settings=limits)
        assert turns(engine) == [*before, 0]
    assert [type(each) for each in events] == [Restarted, Begun, Ended]
    assert isinstance(events[0], Restarted)
    assert "nobody knows what call-1-1 came to" in events[0].line
    assert events[0].tokens > row.episode.requests[0].prompt_tokens


def test_a_trial_whose_calls_come_to_something_else_starts_over_in_a_box_of_its_own(
    tmp_path: Path,
) -> None:
    with served(tmp_path, [DRAWS, ANSWER]) as (yard, engine):
        cut_off(yard, engine, turn=1)
        _, events, row = gone_on(yard)
        assert turns(engine) == [0, 1, 0, 1]
    assert [type(each) for each in events] == [Begun, Restarted, Begun, Ended]
    restarted, end = events[1], events[-1]
    assert isinstance(restarted, Restarted)
    assert "turn 0 of 1: what its calls came to is not what it was" in restarted.line
    assert restarted.tokens > 0
    assert isinstance(end, Ended)
    assert (end.outcome, end.reward) == ("valid", 1.0)
    assert [each.fault for each in row.outcome.attempts] == [None]
    assert list((yard.root / "trials").iterdir()) == []


def test_a_trial_that_is_sampled_otherwise_does_not_go_on(tmp_path: Path) -> None:
    with served(tmp_path, [DONE, ANSWER]) as (yard, engine):
        cut_off(yard, engine, turn=1)
        _, events, _ = gone_on(yard, settings={"sampling": {"seed": 7}})
        assert turns(engine) == [0, 1, 0, 1]
    (restarted,) = [each for each in events if isinstance(each, Restarted)]
    assert "how it is sampled is not what it was" in restarted.line


def test_a_journal_that_is_damaged_or_not_there_is_said(tmp_path: Path) -> None:
    with served(tmp_path, [DONE, ANSWER]) as (yard, engine):
        cut_off(yard, engine, turn=1)

        async def work() -> list[CrewEvent]:
            async with heard(yard.options()) as crew:
                place = crew.crew.ready.resumable["a"]
                damage(Path(place, "agent/turns.journal"))
                await crew.crew.begin(yard.order("b", resume_from=place))
                await crew.crew.begin(yard.order("c", resume_from="/nowhere"))
                await crew.ends(2)
                return [each for each in crew.events if isinstance(each, Restarted)]

        lines = {each.trial: each.line for each in play(work()) if isinstance(each, Restarted)}
    assert "holds bytes" in lines["b"]
    assert "No such file" in lines["c"]


def test_journals_are_kept_of_two_crews_and_no_more(tmp_path: Path) -> None:
    with served(tmp_path, [DONE, ANSWER]) as (yard, engine):
        found: list[list[str]] = []
        for name in ("a", "b", "c"):
            engine.order(Order(fault="silent", turn=1, times=1))

            async def work(crew: Heard, name: str = name) -> None:
                found.append(sorted(crew.crew.ready.resumable))
                before = len(turns(engine))
                await crew.crew.begin(yard.order(name))
                await soon(lambda: len(turns(engine)) == before + 2)
                os.kill(crew.crew.ready.pid, signal.SIGKILL)

            play(lost(yard.options(), work))
        assert found == [[], ["a"], ["a", "b"]]

        async def last() -> list[str]:
            async with heard(replace(yard.options(), keep_trials="none")) as crew:
                return sorted(crew.crew.ready.resumable)

        assert play(last()) == ["b", "c"]
