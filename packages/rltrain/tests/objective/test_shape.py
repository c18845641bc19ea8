# SPDX-License-Identifier: Apache-2.0
"""Length penalty and overlong filtering agree with the reference."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from rltrain.objective.shape import LengthPenalty, not_overlong, penalised

from . import reference
from .batches import Drawn, drawn

pytestmark = pytest.mark.trainer


@given(batch=drawn())
@settings(deadline=None, max_examples=100)
def test_the_length_penalty_agrees_with_the_reference(batch: Drawn) -> None:
    shown = [3 * each + 1 for each in batch.tokens]
    config = LengthPenalty(model=0.3, environment=0.1, longest=64)
    wanted = reference.length_penalty(
        batch.rewards,
        batch.valid,
        batch.group,
        batch.tokens,
        shown,
        model_coefficient=0.3,
        environment_coefficient=0.1,
        longest=64,
    )
    found = penalised(config, batch.samples(), torch.tensor(shown))
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-12)


def test_without_a_penalty_rewards_are_as_they_were() -> None:
    batch = Drawn([1.0, 0.0], [True] * 2, [True] * 2, [0, 0], [5, 6]).samples()
    assert penalised(LengthPenalty(), batch, torch.tensor([1, 1])) is batch.rewards


def test_what_was_cut_off_is_not_live_and_stays_valid() -> None:
    stops = ["final", "context", "length", "turn_cap", "timeout", "fault"]
    live = torch.tensor([True, True, True, True, True, False])
    wanted = reference.overlong(stops, [True] * 6, live.tolist())
    assert not_overlong(live, stops).tolist() == list(wanted)
    assert live.tolist() == [True, True, True, True, True, False]


def test_a_penalty_needs_a_length() -> None:
    with pytest.raises(ValueError, match="longest: a length penalty needs it"):
        LengthPenalty(model=0.1)
