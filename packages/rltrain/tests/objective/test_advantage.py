# SPDX-License-Identifier: Apache-2.0
"""Advantages agree with the reference, and what is not valid is in none of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings

from rltrain.objective.advantage import ESTIMATORS, AdvantageConfig, advantages
from rltrain.objective.types import Samples

from . import reference
from .batches import Drawn, drawn

pytestmark = pytest.mark.trainer

CONFIGS = [AdvantageConfig(name=name) for name in ESTIMATORS]  # pyright: ignore
CONFIGS.append(AdvantageConfig(name="grpo", deviation=True))
TOLERANCE = {torch.float64: (1e-12, 1e-12), torch.float32: (1e-5, 1e-7)}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("config", CONFIGS, ids=lambda each: f"{each.name}-{each.deviation}")
@given(batch=drawn())
@settings(deadline=None, max_examples=100)
def test_advantages_agree_with_the_reference(
    batch: Drawn, config: AdvantageConfig, dtype: torch.dtype
) -> None:
    said = (batch.samples(dtype).rewards.tolist(), batch.valid, batch.group)
    try:
        values, dropped = reference.advantages(config.name, *said, deviation=config.deviation)
    except ValueError:
        with pytest.raises(ValueError, match="maxrl"):
            advantages(config, batch.samples(dtype))
        return
    found = advantages(config, batch.samples(dtype))
    rtol, atol = TOLERANCE[dtype]
    np.testing.assert_allclose(found.values.numpy(), values, rtol=rtol, atol=atol)
    assert dict(found.dropped) == dropped
    assert found.kept.tolist() == [each not in dropped for each in batch.group]


@given(batch=drawn())
@settings(deadline=None, max_examples=50)
def test_the_reward_of_an_invalid_sample_does_not_matter(batch: Drawn) -> None:
    assume(not all(batch.valid))
    other = [each if ok else 77.0 for each, ok in zip(batch.rewards, batch.valid, strict=True)]
    one = advantages(AdvantageConfig(), batch.samples())
    two = advantages(AdvantageConfig(), Drawn(**{**vars(batch), "rewards": other}).samples())
    assert torch.equal(one.values, two.values)


def test_one_of_sixteen_without_a_valid_reward_leaves_the_others_at_zero_together() -> None:
    valid = [True] * 15 + [False]
    rewards = [1.0, 0.0, 0.5] * 5 + [0.0]
    batch = Drawn(rewards, valid, valid, [0] * 16, [10] * 16)
    values = advantages(AdvantageConfig(), batch.samples()).values
    assert abs(float(values.sum())) < 1e-12
    assert float(values[15]) == 0.0


def test_a_live_sample_must_be_valid() -> None:
    with pytest.raises(ValueError, match="live and not valid"):
        Drawn([1.0], [False], [True], [0], [1]).samples()


def test_a_batch_without_a_valid_sample_drops_every_group() -> None:
    dead = Drawn([float("nan")] * 3, [False] * 3, [False] * 3, [1, 1, 2], [4, 4, 4])
    for config in CONFIGS:
        found = advantages(config, dead.samples())
        assert found.values.tolist() == [0.0, 0.0, 0.0]
        assert dict(found.dropped) == {1: "few_valid", 2: "few_valid"}


def test_wrong_settings_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="there is no 'gae'; there are grpo, rloo"):
        AdvantageConfig(name="gae")  # pyright: ignore
    with pytest.raises(ValueError, match="deviation: rloo has none"):
        AdvantageConfig(name="rloo", deviation=True)


def test_samples_say_how_many_they_are() -> None:
    batch: Samples = Drawn([1.0, 0.0], [True] * 2, [True] * 2, [0, 0], [1, 1]).samples()
    assert len(batch) == 2
