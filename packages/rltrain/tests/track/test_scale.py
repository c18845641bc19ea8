# SPDX-License-Identifier: Apache-2.0
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rltrain.track.scale import (
    Axis,
    Column,
    apart,
    gathered,
    short,
    stretches,
    ticks,
    usual,
    whole_ticks,
)

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(low=finite, high=finite, value=finite)
def test_an_axis_puts_every_value_between_its_ends(low: float, high: float, value: float) -> None:
    low, high = max(min(low, high), -1e100), min(max(low, high), 1e100)
    axis = Axis(low=low, high=max(low, high), start=200.0, stop=10.0)
    assert 10.0 <= axis.at(value) <= 200.0


def test_an_axis_keeps_order_and_ends() -> None:
    axis = Axis(low=-1.0, high=3.0, start=0.0, stop=100.0)
    assert [axis.at(value) for value in (-1.0, 0.0, 1.0, 3.0)] == [0.0, 25.0, 50.0, 100.0]


@given(values=st.lists(finite), zero=st.booleans())
def test_ticks_enclose_all_values_and_are_few(values: list[float], zero: bool) -> None:
    found = ticks(values, zero)
    held = [min(max(value, -1e100), 1e100) for value in values]
    slack = 1e-5 * (found[-1] - found[0])
    assert all(found[0] - slack <= value <= found[-1] + slack for value in held)
    assert 2 <= len(found) <= 7
    assert all(a < b for a, b in pairwise(found))
    assert not zero or found[0] <= 0 <= found[-1]


@pytest.mark.parametrize(
    ("values", "zero", "found"),
    [
        ([], True, [0, 0.5, 1]),
        ([0.0], True, [0, 0.5, 1]),
        ([0.19, 0.33], True, [0, 0.1, 0.2, 0.3, 0.4]),
        ([0.92, 0.96], False, [0.92, 0.93, 0.94, 0.95, 0.96]),
        ([5.0, 5.0], False, [0, 2, 4, 6]),
        ([-3.0, -1.0], True, [-3, -2, -1, 0]),
    ],
)
def test_ticks_are_round(values: list[float], zero: bool, found: list[float]) -> None:
    assert ticks(values, zero) == pytest.approx(found)


@given(low=st.integers(0, 10**9), more=st.integers(0, 10**9))
def test_ticks_of_steps_are_whole_and_inside(low: int, more: int) -> None:
    found = whole_ticks(low, low + more)
    assert found
    assert len(found) <= 7
    assert all(low <= tick <= low + more for tick in found)


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.02, "0.02"), (1e-6, "1e-6"), (160_000, "160k"), (2_500_000, "2.5M"), (-20_000, "-20k")],
)
def test_ticks_are_written_short(value: float, words: str) -> None:
    assert short(value) == words


@pytest.mark.parametrize(
    ("steps", "values", "found"),
    [
        ([], [], []),
        ([1, 2, 3], [None, None, None], []),
        ([1, 2, 3], [0.1, None, 0.3], [[(1, 0.1)], [(3, 0.3)]]),
        ([1, 2, 3, 4], [None, 0.2, 0.3, None], [[(2, 0.2), (3, 0.3)]]),
        ([1, 2, 3, 6, 7], [1, 2, 3, 6, 7], [[(1, 1), (2, 2), (3, 3)], [(6, 6), (7, 7)]]),
        ([10, 20, 30], [1, 2, 3], [[(10, 1), (20, 2), (30, 3)]]),
        (
            [0, 9, 18, 27, 31, 36],
            [0, 1, 2, 3, None, 5],
            [[(0, 0), (9, 1), (18, 2), (27, 3)], [(36, 5)]],
        ),
    ],
)
def test_what_was_not_measured_is_a_gap(
    steps: list[int], values: list[float | None], found: list[list[tuple[int, float]]]
) -> None:
    assert stretches(steps, values) == found


@given(st.lists(st.none() | st.floats(0, 1), max_size=60))
def test_stretches_hold_all_that_was_measured_and_nothing_else(
    values: list[float | None],
) -> None:
    steps = list(range(len(values)))
    found = stretches(steps, values)
    assert [point for stretch in found for point in stretch] == [
        (step, value) for step, value in zip(steps, values, strict=True) if value is not None
    ]
    assert all(b - a == 1 for stretch in found for (a, _), (b, _) in pairwise(stretch))


def test_points_with_room_stay_as_they_are() -> None:
    points = [(float(n * 3), float(n % 5)) for n in range(50)]
    assert gathered(points) == [Column(x=x, top=y, middle=y, bottom=y) for x, y in points]


def test_dense_points_are_gathered_and_their_extremes_stay() -> None:
    points = [(n / 10, 99.0 if n == 500 else float(n % 7)) for n in range(1000)]
    found = gathered(points)
    assert len(found) == 34
    assert max(column.bottom for column in found) == 99.0
    assert all(column.top <= column.middle <= column.bottom for column in found)
    assert all(a.x < b.x for a, b in pairwise(found))


@given(st.lists(st.floats(12, 164), max_size=9))
def test_labels_keep_apart_inside_and_in_order(wanted: list[float]) -> None:
    placed = apart(wanted, 15, 12, 164)
    assert all(12 - 1e-9 <= y <= 164 + 1e-9 for y in placed)
    assert all(b - a >= 15 - 1e-6 for a, b in pairwise(sorted(placed)))
    order = sorted(range(len(wanted)), key=lambda n: wanted[n])
    assert sorted(placed) == [placed[n] for n in order]


def test_more_labels_than_fit_share_the_room() -> None:
    assert apart([50.0] * 11, 15, 0, 100) == pytest.approx([10.0 * n for n in range(11)])


def test_a_label_with_room_stays_where_its_line_ends() -> None:
    assert apart([20.0, 90.0], 15, 0, 100) == [20.0, 90.0]


@pytest.mark.parametrize(("steps", "apart_by"), [([4], 1), ([1, 2, 3, 9], 1), ([10, 20], 10)])
def test_steps_are_mostly_so_far_apart(steps: list[int], apart_by: float) -> None:
    assert usual(steps) == apart_by
