# SPDX-License-Identifier: Apache-2.0
"""Whoever watches a run from outside hears of each trial once."""

from __future__ import annotations

import json
import resource
from dataclasses import replace
from pathlib import Path

import pytest

from envkit.fault import HarnessError
from envkit.run.events import Events
from envkit.trajectory.head import Head, head_of

from ..trajectory.rows import trajectory
from .small import ended, lines

HEAD = head_of(trajectory("a", seed=1))


def named(name: str) -> Head:
    return replace(HEAD, trajectory_id=name)


def say(path: Path, run: str, *names: str) -> None:
    events = Events(path, run)
    for name in names:
        events.ended(named(name))
    events.close()


def test_each_trial_of_a_run_is_said_once_over_all_its_processes(tmp_path: Path) -> None:
    path = tmp_path / "events"
    say(path, "one", "a", "b", "b")
    say(path, "one", "a", "b", "c")
    assert ended(path) == ["a", "b", "c"]


def test_another_run_may_use_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "events"
    say(path, "one", "a")
    say(path, "two", "a")
    assert [line["run"] for line in lines(path)] == ["one", "two"]


@pytest.mark.parametrize("torn", range(1, 40, 7))
def test_a_line_that_a_kill_has_torn_is_said_again_on_a_line_of_its_own(
    tmp_path: Path, torn: int
) -> None:
    path = tmp_path / "events"
    say(path, "one", "a", "b")
    path.write_bytes(path.read_bytes()[:-torn])
    say(path, "one", "a", "b")
    assert len(_whole(path)) == 2
    assert path.read_text().endswith("}\n")


def test_a_line_says_what_the_trial_was_worth(tmp_path: Path) -> None:
    say(tmp_path / "events", "one", "a")
    (line,) = lines(tmp_path / "events")
    assert line["reward"] == HEAD.reward
    assert line["sampled_tokens"] == HEAD.sampled_tokens


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"--events \S+nowhere/events: No such file"):
        Events(tmp_path / "nowhere/events", "one")


def test_a_line_that_finds_no_room_is_an_error_and_is_said_again_where_there_is(
    tmp_path: Path,
) -> None:
    path = tmp_path / "events"
    say(path, "one", "a")
    size, limits = path.stat().st_size, resource.getrlimit(resource.RLIMIT_FSIZE)
    events = Events(path, "one")
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, limits[1]))
        with pytest.raises(HarnessError, match=r"--events \S+: No space left on device; make room"):
            events.ended(named("b"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        events.close()
    assert path.stat().st_size == size + 20
    say(path, "one", "a", "b")
    assert [json.loads(line)["trial"] for line in _whole(path)] == ["a", "b"]


def _whole(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line.endswith("}")]


def test_nothing_is_said_where_nobody_asked() -> None:
    events = Events(None, "one")
    events.ended(HEAD)
    events.close()
