# SPDX-License-Identifier: Apache-2.0
"""Crews killed at exact points: what was said is there, nothing is there twice or half."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from envkit.crew.client import open_crew
from envkit.crew.types import CrewLost, CrewOptions, Ended, Ready
from envkit.sandbox.reaper import remnants
from envkit.trajectory.store import Store

from ..engines.scripted import Scripted
from ..run.small import model_that_says
from ..trial.tiny import make_task
from .small import Heard, Yard, heard, play, ran

pytestmark = pytest.mark.integration

TRIALS = ("a", "b", "c")
PROGRAM = Path(__file__).with_name("killed_at.py")


@pytest.fixture(autouse=True)
def needs_boxes(boxes: None) -> None: ...


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Scripted]]:
    with model_that_says(tmp_path_factory.mktemp("model")) as served:
        yield served


@pytest.fixture
def yard(tmp_path: Path, served: tuple[Path, Scripted]) -> Yard:
    make_task(tmp_path / "tasks")
    return Yard(home=tmp_path, model=served[0], engine=served[1].url)


def killed_at(point: str, number: int, yard: Yard) -> CrewOptions:
    """What a crew is opened with that dies there."""
    program = yard.home / f"{point}.sh"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {PROGRAM} {point} {number} "$4"\n')
    program.chmod(0o755)
    return replace(yard.options(concurrency=1), python=program)


def heard_until_killed(options: CrewOptions, yard: Yard) -> Heard:
    """What it said before it died, whenever that was."""
    found: list[Heard] = []

    async def work() -> None:
        async with heard(options) as crew:
            found.append(crew)
            for name in TRIALS:
                await crew.crew.begin(yard.order(name))
            await crew.until(lambda _: False)

    with pytest.raises(CrewLost):
        play(work())
    return found[0]


def opened(options: CrewOptions) -> Ready:
    async def work() -> Ready:
        async with open_crew(options) as crew:
            return crew.ready

    return play(work())


@pytest.mark.parametrize(
    ("point", "number"),
    [
        ("record-after-rename", 2),
        ("segment-before-rename", 2),
        ("segment-after-rename", 1),
        ("removed-but-not-said", 1),
        ("stored-but-not-said", 1),
    ],
)
def test_a_killed_crew_loses_no_row_that_it_said_and_stores_none_twice(
    yard: Yard, point: str, number: int
) -> None:
    crew = heard_until_killed(killed_at(point, number, yard), yard)
    said = {each.trial for each in crew.events if isinstance(each, Ended)}
    after = opened(yard.options())
    assert remnants(crew.crew.ready.run_token) == []
    stored = set(Store(yard.root / "trajectories").ids)
    assert said <= stored
    assert stored.isdisjoint(after.cut_off)
    assert list((yard.root / "trials").iterdir()) == []
    missing = [yard.order(name) for name in TRIALS if name not in stored]
    ends = play(ran(yard.options(), missing))
    assert [each.outcome for each in ends.values() if isinstance(each, Ended)] == [
        "valid" for _ in missing
    ]
    rows = [row.identity.trajectory_id for row in Store(yard.root / "trajectories")]
    assert sorted(rows) == list(TRIALS)


def test_a_crew_that_is_killed_as_it_opens_hinders_no_other(yard: Yard) -> None:
    first = heard_until_killed(killed_at("stored-but-not-said", 1, yard), yard)
    for point in ("buried", "swept"):
        with pytest.raises(CrewLost):
            opened(killed_at(point, 1, yard))
    after = opened(yard.options())
    assert remnants(first.crew.ready.run_token) == []
    assert set(after.resumable) <= {"b", "c"}
    assert list((yard.root / "trials").iterdir()) == []
