# SPDX-License-Identifier: Apache-2.0
"""Every token weighs the same, whichever row or turn it is of."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from rltrain.gates.figures import EDGES, Figures, by_turn, histogram, worst
from rltrain.gates.taken import Compared, Row

from ..batch.made import trajectory

PLACES = [4, 5, 6, 7, 8, 15, 16, 17]
"""What the made trajectory's model sampled: five tokens, and three in its next turn."""


def compared(off: dict[int, float], name: str = "task__000") -> Compared:
    """A row of which the trainer differs so much at these places."""
    row = Row.of(trajectory(name), version=7)
    trainer = np.where(row.sample.mask, row.sample.logprobs, np.nan).astype(np.float64)
    for place, by in off.items():
        trainer[place] += by
    return Compared(row=row, trainer=trainer)


def test_the_mean_is_over_tokens_and_not_over_rows_or_turns() -> None:
    rows = [compared({4: 0.8, 15: -0.4}), compared({16: 0.1}, "task__001")]
    rollout = np.concatenate([each.row.sample.logprobs[PLACES] for each in rows])
    trainer = np.concatenate([each.trainer[PLACES] for each in rows])
    found = Figures.of(rollout.astype(np.float64), trainer)
    assert found.tokens == 16
    assert found.mean == pytest.approx(1.3 / 16)
    assert found.signed == pytest.approx(0.5 / 16)
    assert found.most == pytest.approx(0.8)
    kl = sum(math.exp(d) - 1 - d for d in (0.8, -0.4, 0.1)) / 16
    assert found.kl == pytest.approx(kl)


def test_quantiles_are_of_sizes() -> None:
    difference = np.linspace(-1.0, 1.0, 201)
    found = Figures.of(np.zeros(201), difference)
    assert (found.p50, found.p90, found.p99) == pytest.approx((0.5, 0.9, 0.99), abs=6e-3)
    assert found.signed == pytest.approx(0.0, abs=1e-12)


def test_a_ratio_that_would_overflow_is_bounded() -> None:
    assert Figures.of(np.array([-900.0]), np.array([0.0])).kl == pytest.approx(math.exp(20) - 21)


def test_figures_by_turn_are_those_of_its_tokens() -> None:
    first, second = by_turn([compared({4: 0.5, 15: -0.3})])
    assert (first.turn, first.figures.tokens, second.turn, second.figures.tokens) == (0, 5, 1, 3)
    assert first.figures.mean == pytest.approx(0.1)
    assert second.figures.signed == pytest.approx(-0.1)


def test_the_histogram_holds_every_token_once() -> None:
    bins = histogram([compared({4: 2.0, 5: 5e-5, 6: -0.05})])
    assert [(each.low, each.high) for each in bins] == list(itertools.pairwise(EDGES))
    assert {each.low: each.tokens for each in bins if each.tokens} == {
        0.0: 5,
        1e-5: 1,
        3e-2: 1,
        1.0: 1,
    }


def test_the_worst_tokens_come_with_what_stands_around_them() -> None:
    def decode(ids: object) -> str:
        return "".join(f"<{each}>" for each in ids)  # type: ignore[attr-defined]

    rows = [compared({4: 0.1, 17: -0.7}), compared({8: 0.3}, "task__001")]
    first, second, third = worst(rows, decode, most=3)
    assert (first.trajectory_id, first.place, first.turn) == ("task__000", 17, 1)
    assert (first.token, first.after) == ("<117>", "")
    assert first.before.endswith("<115><116>")
    assert first.trainer - first.rollout == pytest.approx(-0.7)
    assert (second.trajectory_id, second.place, second.turn) == ("task__001", 8, 0)
    assert second.after.startswith("<109>")
    assert third.place == 4


def test_nothing_is_worst_where_nothing_is_comparable() -> None:
    none = compared({})
    sample = replace(none.row.sample, mask=np.zeros_like(none.row.sample.mask))
    assert worst([replace(none, row=replace(none.row, sample=sample))], str) == ()
