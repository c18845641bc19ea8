# SPDX-License-Identifier: Apache-2.0
"""Weights agree with the reference, and what is not live changes none of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from rltrain.objective.aggregate import AGGREGATIONS, AggregateConfig, token_weights

from . import reference
from .batches import Drawn, drawn

pytestmark = pytest.mark.trainer


def config_of(name: str) -> AggregateConfig:
    longest = 64 if name == "token_sum_norm" else 0
    return AggregateConfig(name=name, longest=longest)  # pyright: ignore


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("name", AGGREGATIONS)
@given(batch=drawn())
@settings(deadline=None, max_examples=100)
def test_weights_agree_with_the_reference(batch: Drawn, name: str, dtype: torch.dtype) -> None:
    expected = reference.token_weights(name, batch.tokens, batch.live, batch.group, longest=64)
    found = token_weights(config_of(name), batch.samples(), dtype)
    assert found.dtype == dtype
    rtol = 1e-12 if dtype == torch.float64 else 1e-5
    np.testing.assert_allclose(found.numpy(), expected, rtol=rtol, atol=1e-7 * (rtol > 1e-9))


@pytest.mark.parametrize("name", AGGREGATIONS)
@given(batch=drawn())
@settings(deadline=None, max_examples=50)
def test_what_is_not_live_changes_no_weight_of_any_other(batch: Drawn, name: str) -> None:
    rows = zip(*vars(batch).values(), strict=True)
    alive = [row for row in rows if row[2]]
    if not alive:
        assert not token_weights(config_of(name), batch.samples()).any()
        return
    rest = Drawn(*map(list, zip(*alive, strict=True)))
    whole = token_weights(config_of(name), batch.samples())
    alone = token_weights(config_of(name), rest.samples())
    assert torch.equal(whole[torch.tensor(batch.live)], alone)


def test_three_dead_groups_of_sixteen_shrink_nothing() -> None:
    """The published code counted them: the update came to 0.81 of what it was to be."""
    group = [each // 16 for each in range(256)]
    live = [each >= 3 for each in group]
    batch = Drawn([1.0, 0.0] * 128, [True] * 256, live, group, [10] * 256)
    for name in ("prompt_mean", "prompt_sequence_mean", "token_mean", "sequence_mean"):
        weights = token_weights(config_of(name), batch.samples())
        assert float((weights * 10).sum()) == pytest.approx(1.0, abs=1e-12)


def test_wrong_settings_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="there is no 'mean'; there are token_mean"):
        AggregateConfig(name="mean")  # pyright: ignore
    with pytest.raises(ValueError, match="longest: token_sum_norm needs it"):
        AggregateConfig(name="token_sum_norm")
    with pytest.raises(ValueError, match="longest: token_sum_norm needs it"):
        AggregateConfig(name="prompt_mean", longest=5)
