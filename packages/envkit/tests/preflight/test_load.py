# SPDX-License-Identifier: Apache-2.0
"""The options that shape the load: read, or refused in one line."""

from typing import Any

import pytest

from envkit.fault import HarnessError
from envkit.preflight.load import args_of, hold_of, starts_of, think_of


def test_arguments_are_json_where_they_are_and_text_elsewhere() -> None:
    pairs = ("model=gpt", "turns=3", "tools=[1, 2]", "deep=true", "equation=a=b", "none=")
    assert args_of("--agent-arg", pairs, own=True) == {
        "model": "gpt",
        "turns": 3,
        "tools": [1, 2],
        "deep": True,
        "equation": "a=b",
        "none": "",
    }


@pytest.mark.parametrize(
    ("pairs", "own", "says"),
    [
        (("turns=3",), False, "only module:Class takes arguments"),
        (("turns",), True, "write name=value"),
        (("=3",), True, "write name=value"),
        (("a b=3",), True, "write name=value"),
        (("a=1", "a=2"), True, "each name once"),
    ],
)
def test_arguments_that_cannot_be_passed_on_are_refused(pairs: Any, own: bool, says: str) -> None:
    with pytest.raises(HarnessError, match=says):
        args_of("--agent-arg", pairs, own)


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf"), 86_401.0])
def test_idle_time_is_bounded(seconds: float) -> None:
    with pytest.raises(HarnessError, match="--hold"):
        hold_of(seconds)


@pytest.mark.parametrize("per_s", [0.0, -1.0, float("nan"), float("inf")])
def test_a_run_without_a_limit_of_starts_is_refused(per_s: float) -> None:
    with pytest.raises(HarnessError, match="not above 0"):
        starts_of(per_s)


def test_starts_have_a_rate_when_none_is_given() -> None:
    assert (starts_of(None), starts_of(0.5)) == (25.0, 0.5)


def test_only_a_replay_is_told_how_long_its_model_takes() -> None:
    assert think_of("recorded", "replay").kind == "recorded"
    assert think_of("", "oracle").kind == "none"
    with pytest.raises(HarnessError, match="takes its own time"):
        think_of("recorded", "oracle")
