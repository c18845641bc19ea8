# SPDX-License-Identifier: Apache-2.0
"""Whatever a store may hold can be shown, also a trial whose loop never began."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from rich.console import Console

from envkit.show.as_json import listing_json, story_json
from envkit.show.page import listing_html, story_html
from envkit.show.rows import listing
from envkit.show.story import tell
from envkit.show.terminal import print_listing, print_story
from envkit.trajectory.types import FaultNote, Limits, Outcome, Stop, Trajectory
from envkit.trial.joined import nothing_seen

from ..trajectory.rows import trajectories, trajectory


def shown(row: Trajectory) -> str:
    """All forms of it, one after the other."""
    story, lines = tell(row, None), listing([row])
    console = Console(width=100)
    with console.capture() as got:
        print_story(story, console, full=True)
        print_listing(lines, console)
    forms = [json.dumps(story_json(story)), json.dumps(listing_json(lines))]
    return "".join([got.get(), story_html(story), listing_html(lines), *forms])


@given(trajectories())
@settings(max_examples=40, deadline=None)
def test_any_trajectory_can_be_shown(row: Trajectory) -> None:
    assert row.identity.trajectory_id in shown(row)


def test_a_trial_whose_loop_never_began_says_whose_fault_that_was() -> None:
    fault = FaultNote(code="ServerStartFailed", owner="server", phase="start", message="no port")
    none = Outcome(reward=None, reward_valid=False, loss_live=False, fault=fault)
    row = replace(trajectory("never"), episode=nothing_seen(Limits()), outcome=none)
    assert row.episode.stop is Stop.FAULT
    said = shown(row)
    assert "no reward: ServerStartFailed, the server's, in start: no port" in " ".join(said.split())


def test_a_list_of_nothing_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_listing(listing([]), Console(width=100))
    assert "0 trajectories" in capsys.readouterr().out
