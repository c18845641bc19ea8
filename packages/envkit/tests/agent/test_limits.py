# SPDX-License-Identifier: Apache-2.0
"""What an episode may use, and whose time it is."""

from typing import Any

import numpy as np
import pytest

from envkit.agent.limits import Account
from envkit.agent.types import Sampled
from envkit.trajectory.types import Limits, Stop

from .small import seen


def account(evaluation: bool = False, **limits: Any) -> Account:
    return Account(limits=Limits(**limits), evaluation=evaluation, clock=lambda: 0.0)


def sampled(seconds: float, queued_s: float = 0.0) -> Sampled:
    return Sampled(
        token_ids=np.array([1, 2], dtype=np.int32),
        logprobs=np.array([-1, -1], dtype=np.float32),
        weight_version=np.array([0, 0], dtype=np.int32),
        finish="stop",
        prompt_tokens=1,
        queued_s=queued_s,
        seconds=seconds,
    )


def test_waiting_for_the_engine_is_not_the_models_time() -> None:
    mine = account(own_s=10.0)
    mine.sampled(sampled(100.0, queued_s=95.0))
    assert (mine.used.own_s, mine.used.waited_s) == (5.0, 95.0)
    assert mine.after_turn() is None
    mine.sampled(sampled(5.0))
    assert mine.after_turn() is Stop.TIMEOUT


def test_a_call_that_somebody_else_spoiled_is_not_the_models_time() -> None:
    mine = account(own_s=10.0)
    mine.called(seen("", seconds=60.0, model_owned=False))
    mine.waited(3.0)
    assert (mine.used.own_s, mine.used.waited_s) == (0.0, 63.0)
    mine.called(seen("", seconds=10.0, ok=False))
    assert mine.may_call() is Stop.TIMEOUT
    assert mine.used.tool_calls == 2


def test_an_answer_may_follow_the_last_call() -> None:
    mine = account(tool_calls=1)
    mine.called(seen(""))
    assert mine.may_call() is Stop.TURN_CAP
    assert mine.may_sample(10) is None


def test_the_last_turn_is_the_one_that_reaches_the_cap() -> None:
    mine = account(turns=2)
    mine.sampled(sampled(1.0))
    assert mine.may_sample(10) is None
    mine.sampled(sampled(1.0))
    assert mine.may_sample(10) is Stop.TURN_CAP


def test_a_full_context_is_a_stop_of_its_own() -> None:
    mine = account(context_tokens=100)
    assert mine.may_sample(99) is None
    assert mine.may_sample(100) is Stop.CONTEXT


def test_zero_is_no_limit() -> None:
    mine = account(turns=0, tool_calls=0, own_s=0.0, repairs=0)
    for _ in range(200):
        mine.sampled(sampled(1e6))
        mine.called(seen("", seconds=1e6))
        assert mine.repair()
    assert mine.may_call() is None
    assert mine.may_sample(10) is None


@pytest.mark.parametrize(
    ("length", "tokens", "observations"), [(0, 300, 700), (600, 300, 200), (800, 200, 100)]
)
def test_a_whole_turn_fits_after_the_observations_or_half_of_what_is_left(
    length: int, tokens: int, observations: int
) -> None:
    mine = account(context_tokens=1000, tokens_per_turn=300)
    assert mine.sample_tokens(length) == tokens
    assert mine.observation_tokens(length) == observations
    assert mine.ends_context(length, tokens) is (length >= 700)


def test_without_a_limit_a_turn_may_have_all_that_is_left() -> None:
    mine = account(context_tokens=1000, tokens_per_turn=0)
    assert mine.sample_tokens(400) == 600
    assert mine.observation_tokens(400) == 300
    assert mine.ends_context(400, 600)


def test_an_engine_with_less_context_ends_it_too() -> None:
    mine = account(context_tokens=1000, tokens_per_turn=300)
    assert mine.ends_context(0, 299)
    assert not mine.ends_context(0, 300)


def test_the_nudge_is_due_from_its_ratio_on_and_once() -> None:
    mine = account(context_tokens=1000, nudge_ratio=0.2)
    assert not mine.nudge_is_due(799)
    assert mine.nudge_is_due(800)
    mine.nudged(4)
    assert mine.used.nudged_at == 4
    assert not mine.nudge_is_due(800)
    assert not mine.nudge_is_due(990)


def test_a_nudge_after_the_first_turn_is_latched_too() -> None:
    mine = account(context_tokens=1000)
    mine.nudged(0)
    assert not mine.nudge_is_due(990)


def test_an_evaluation_has_no_nudge() -> None:
    assert not account(evaluation=True, context_tokens=1000).nudge_is_due(990)
    assert not account(nudge_ratio=0.0, context_tokens=1000).nudge_is_due(1000)


def test_repairs_are_counted_over_the_whole_episode() -> None:
    mine = account(repairs=2)
    assert [mine.repair() for _ in range(3)] == [True, True, False]
    assert mine.used.repairs == 2


@pytest.mark.parametrize(("own_s", "stop"), [(95.0, Stop.TIMEOUT), (80.0, Stop.FAULT)])
def test_an_episode_cut_short_is_the_models_only_if_it_used_up_the_time(
    own_s: float, stop: Stop
) -> None:
    times = iter([0.0, 100.0])
    mine = Account(limits=Limits(), clock=lambda: next(times))
    mine.sampled(sampled(own_s))
    assert mine.cut_short() is stop


def test_a_call_without_an_end_is_the_models_time() -> None:
    times = iter([0.0, 10.0, 100.0])
    mine = Account(limits=Limits(), clock=lambda: next(times))
    mine.calls()
    assert mine.cut_short() is Stop.TIMEOUT
    assert mine.used.own_s == 90.0


def test_a_call_that_came_back_is_counted_once() -> None:
    times = iter([0.0, 1.0, 100.0])
    mine = Account(limits=Limits(), clock=lambda: next(times))
    mine.calls()
    mine.called(seen("", seconds=2.0))
    assert mine.cut_short() is Stop.FAULT
    assert mine.used.own_s == 2.0
