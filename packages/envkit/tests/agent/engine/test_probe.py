# SPDX-License-Identifier: Apache-2.0
"""Two requests tell which distribution logprobs are of; what fits neither is refused."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from envkit.agent.engine.probe import KEPT, LEAST_GAP, WARM, told_apart
from envkit.fault import OtherDistribution

LOGITS = st.lists(st.floats(-20, 20), min_size=KEPT + 2, max_size=40)


def table(logits: np.ndarray, *, temperature: float = 1.0, kept: int = 0) -> dict[int, float]:
    """The best tokens' logprobs."""
    scaled = logits / temperature
    order = np.argsort(-scaled)
    whole = scaled[order[:kept]] if kept else scaled
    logprobs = scaled - np.logaddexp.reduce(whole)
    return {int(each): float(logprobs[each]) for each in order[:KEPT]}


@given(LOGITS, st.floats(-0.002, 0.002))
def test_both_modes_are_told_for_what_they_are(values: list[float], noise: float) -> None:
    logits = np.array(values)
    plain = table(logits)
    assume(max(plain.values()) - min(plain.values()) > LEAST_GAP + 0.01)
    shaped = table(logits, temperature=WARM, kept=KEPT)
    noisy = {
        each: value + noise * (place == 0) for place, (each, value) in enumerate(plain.items())
    }
    assert told_apart(plain, noisy) == "raw"
    assert told_apart(noisy, shaped) == "processed"


def test_a_scaled_but_untruncated_distribution_is_neither() -> None:
    logits = -np.log1p(np.arange(100.0))
    with pytest.raises(OtherDistribution, match="neither"):
        told_apart(table(logits), table(logits, temperature=WARM))


def test_another_temperature_is_neither() -> None:
    logits = -np.log1p(np.arange(100.0))
    with pytest.raises(OtherDistribution, match="neither"):
        told_apart(table(logits), table(logits, temperature=1.4, kept=KEPT))


@pytest.mark.parametrize("plain", [{}, {1: -1.0}, {1: -math.log(4), 2: -math.log(4)}])
def test_nothing_is_told_of_what_is_flat(plain: dict[int, float]) -> None:
    with pytest.raises(OtherDistribution, match="flat"):
        told_apart(plain, plain)
