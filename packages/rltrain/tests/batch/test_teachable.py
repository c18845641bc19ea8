# SPDX-License-Identifier: Apache-2.0
"""Groups that steps are taken on are known from rows alone, as their samples' stamps have them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envkit.trajectory.types import Stop
from rltrain.batch.sample import Sample
from rltrain.batch.source import Group, Row
from rltrain.batch.stamp import stamp, teachable
from rltrain.objective.advantage import AdvantageConfig, NotAboveZero
from rltrain.objective.config import ObjectiveConfig
from rltrain.objective.shape import LengthPenalty

from .made import sample

pytestmark = pytest.mark.trainer

GRPO = ObjectiveConfig()
REWARDS = (0.0, 1.0, 0.5, 0.5 + 5e-7, -1.0)
PENALTIES = (
    LengthPenalty(),
    LengthPenalty(model=0.5, longest=40),
    LengthPenalty(environment=2.0, longest=10),
)


def row(of: Sample) -> Row:
    """What is known of a sample without its tokens."""
    return Row(
        trajectory_id=of.trajectory_id,
        group_id=of.group_id,
        reward=of.reward,
        valid=of.valid,
        live=of.live,
        tokens=len(of),
        trained=of.trained,
        topk=False,
        temperature=of.temperature,
        environment_tokens=of.environment_tokens,
        oldest=3,
        newest=3,
        content="",
    )


def grouped(samples: list[Sample]) -> list[Group]:
    names = dict.fromkeys(each.group_id for each in samples)
    return [
        Group(name=name, rows=tuple(row(each) for each in samples if each.group_id == name))
        for name in names
    ]


def silent(name: str, **changes: Any) -> Sample:
    """It said nothing."""
    made = sample(name)
    return sample(name, mask=made.mask & False, **changes)


@st.composite
def batches(draw: Any) -> list[Sample]:
    made: list[Sample] = []
    for group in range(draw(st.integers(1, 5))):
        for number in range(draw(st.integers(1, 4))):
            state = draw(st.sampled_from(["live", "live", "live", "stale", "invalid"]))
            valid = state != "invalid"
            make = draw(st.sampled_from([sample, sample, sample, silent]))
            made.append(
                make(
                    f"g{group}__{number}",
                    reward=draw(st.sampled_from(REWARDS)) if valid else None,
                    valid=valid,
                    live=state == "live",
                    stop=draw(st.sampled_from([Stop.FINAL, Stop.LENGTH])),
                    environment_tokens=draw(st.integers(0, 5)),
                )
            )
    return draw(st.permutations(made))


@st.composite
def configs(draw: Any) -> ObjectiveConfig:
    return ObjectiveConfig(
        advantage=AdvantageConfig(
            name=draw(st.sampled_from(["grpo", "rloo", "maxrl", "reinforce_pp"]))
        ),
        length_penalty=draw(st.sampled_from(PENALTIES)),
        overlong_filter=draw(st.booleans()),
    )


@given(config=configs(), samples=batches())
@settings(deadline=None, max_examples=150)
def test_it_drops_what_a_stamp_drops_for_the_same_reason(
    config: ObjectiveConfig, samples: list[Sample]
) -> None:
    groups = grouped(samples)
    live = {each.group_id for each in samples if each.live and each.trained}
    seen = [each for each in samples if each.group_id in live]
    try:
        kept, dropped = teachable(config, groups)
    except NotAboveZero:
        with pytest.raises(NotAboveZero):
            stamp(config, seen)
        return
    assert [each.name for each in kept] == [g.name for g in groups if g.name not in dropped]
    assert {n for n, why in dropped.items() if why == "not_live"} == {g.name for g in groups} - live
    by_reward = {name: why for name, why in dropped.items() if why != "not_live"}
    assert by_reward == dict(stamp(config, seen).dropped if seen else {})


@given(config=configs(), samples=batches())
@settings(deadline=None, max_examples=100)
def test_a_step_is_taken_on_every_group_that_is_kept_and_on_no_other(
    config: ObjectiveConfig, samples: list[Sample]
) -> None:
    try:
        kept, _ = teachable(config, grouped(samples))
        stamped = stamp(config, samples)
    except NotAboveZero:
        return
    trained = {samples[number].group_id for number in stamped.trained}
    names = {each.name for each in kept}
    assert trained <= names
    if not config.overlong_filter:
        assert trained == names


@pytest.mark.parametrize(
    ("samples", "why"),
    [
        ([sample("a__0", reward=1.0)], "few_valid"),
        (
            [
                sample("a__0", reward=1.0),
                sample("a__1", reward=None, valid=False, live=False),
            ],
            "few_valid",
        ),
        ([sample("a__0", reward=1.0), sample("a__1", reward=1.0)], "no_variance"),
        ([sample("a__0", reward=0.5), sample("a__1", reward=0.5 + 1e-6 / 2)], "no_variance"),
        (
            [sample("a__0", reward=1.0, live=False), sample("a__1", reward=0.0, live=False)],
            "not_live",
        ),
        ([silent("a__0", reward=1.0), silent("a__1", reward=0.0)], "not_live"),
        (
            [
                sample("a__0", reward=None, valid=False, live=False),
                sample("a__1", reward=None, valid=False, live=False),
            ],
            "not_live",
        ),
    ],
)
def test_a_group_that_teaches_nothing_is_dropped_with_its_reason(
    samples: list[Sample], why: str
) -> None:
    good = [sample("z__0", reward=1.0), sample("z__1", reward=0.0)]
    kept, dropped = teachable(GRPO, grouped([*samples, *good]))
    assert ([each.name for each in kept], dropped) == (["z"], {"a": why})


def test_a_stale_sample_is_a_baseline_for_the_live_one() -> None:
    samples = [sample("a__0", reward=1.0), sample("a__1", reward=0.0, live=False)]
    kept, dropped = teachable(GRPO, grouped(samples))
    assert ([each.name for each in kept], dropped) == (["a"], {})


def test_lengths_make_a_difference_where_rewards_do_not() -> None:
    config = ObjectiveConfig(length_penalty=LengthPenalty(environment=0.1, longest=10))
    samples = [
        sample("a__0", reward=1.0, environment_tokens=2),
        sample("a__1", reward=1.0, environment_tokens=9),
    ]
    assert teachable(GRPO, grouped(samples))[1] == {"a": "no_variance"}
    assert teachable(config, grouped(samples))[1] == {}


MAXRL = ObjectiveConfig(advantage=AdvantageConfig(name="maxrl"))


def test_maxrl_names_the_group_that_it_does_not_take() -> None:
    good = [sample("a__0", reward=1.0), sample("a__1", reward=0.0)]
    bad = [sample("b__0", reward=0.5), sample("b__1", reward=-1.0)]
    with pytest.raises(NotAboveZero, match=r"^maxrl .* that of group b is not above 0$"):
        teachable(MAXRL, grouped([*good, *bad]))


def test_maxrl_takes_what_it_never_trains_on() -> None:
    good = [sample("a__0", reward=1.0), sample("a__1", reward=0.0)]
    flat = [sample("b__0", reward=-1.0), sample("b__1", reward=-1.0)]
    stale = [sample("c__0", reward=0.5, live=False), sample("c__1", reward=-1.0, live=False)]
    _, dropped = teachable(MAXRL, grouped([*good, *flat, *stale]))
    assert dropped == {"b": "no_variance", "c": "not_live"}


def test_maxrl_does_not_take_rewards_that_a_penalty_leaves_below_zero() -> None:
    samples = [sample("a__0", reward=1.0), sample("a__1", reward=0.0)]
    config = ObjectiveConfig(
        advantage=AdvantageConfig(name="maxrl"),
        length_penalty=LengthPenalty(environment=8.0, longest=2),
    )
    with pytest.raises(NotAboveZero, match="group a"):
        teachable(config, grouped(samples))
