# SPDX-License-Identifier: Apache-2.0
"""Pauses of a replay: read, repeated, bounded."""

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.agent.recording import Call
from envkit.agent.think import MOST_S, Think, parse_think
from envkit.fault import HarnessError

CALL = Call(tool="look", arguments={}, think_s=4.0)


@pytest.mark.parametrize(
    ("text", "think", "pause_s"),
    [
        ("", Think(), 0.0),
        ("recorded", Think(kind="recorded"), 4.0),
        ("recorded*0.1", Think(kind="recorded", scale=0.1), 0.4),
        ("2.5", Think(kind="fixed", seconds=2.5), 2.5),
        ("0", Think(kind="fixed"), 0.0),
        ("lognormal:8,0", Think(kind="lognormal", seconds=8.0), 8.0),
    ],
)
def test_every_form_is_read_and_gives_its_pause(text: str, think: Think, pause_s: float) -> None:
    assert parse_think(text) == think
    assert think.pauses("seed")(CALL) == pytest.approx(pause_s)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "fast",
            "-1",
            "nan",
            "inf",
            "3601",
            "recorded*",
            "recorded*-1",
            "recorded*x",
            "recorded2",
        ),
        *(
            "lognormal",
            "lognormal:",
            "lognormal:5",
            "lognormal:0,1",
            "lognormal:5,",
            "lognormal:5,9",
        ),
    ],
)
def test_what_is_no_pause_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(HarnessError, match=r"--think-time .*lognormal:MEDIAN_S,SIGMA"):
        parse_think(text)


@given(st.text(max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        pause = parse_think(text).pauses("seed")(CALL)
    except HarnessError:
        return
    assert 0 <= pause <= MOST_S


def test_what_is_drawn_is_the_same_for_a_seed_and_differs_between_trials() -> None:
    think = parse_think("lognormal:5,1")
    first, again, other = (think.pauses(seed) for seed in ("0/a", "0/a", "0/b"))
    drawn = [first(CALL) for _ in range(9)]
    assert drawn == [again(CALL) for _ in range(9)]
    assert drawn != [other(CALL) for _ in range(9)]


def test_the_median_of_what_is_drawn_is_the_one_asked_for() -> None:
    pause = parse_think("lognormal:5,1").pauses("any seed")
    assert 4.5 < median(pause(CALL) for _ in range(9_999)) < 5.5


def test_a_long_tail_is_cut_where_no_turn_is_so_long() -> None:
    pause = parse_think("lognormal:3000,4").pauses("any seed")
    assert max(pause(CALL) for _ in range(99)) == MOST_S
