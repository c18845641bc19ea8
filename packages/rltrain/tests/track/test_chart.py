# SPDX-License-Identifier: Apache-2.0
"""Drawings, read back as XML: what a browser would draw."""

import re
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rltrain.track.chart import FOOT, HALF, LEFT, RIGHT, TOP, WIDE, Chart, Series, drawn
from rltrain.track.stack import COLUMNS, Stack, columns, stacked

numbers = st.floats(allow_nan=False, allow_infinity=False)
measured = st.lists(st.none() | numbers, min_size=1, max_size=25)
PAIR = re.compile(r"(-?[\d.]+) (-?[\d.]+)")


def series(values: Sequence[float | None], name: str = "mean", colour: str = "c0") -> Series:
    return Series(name=name, values=values, colour=colour)


def chart(*of: Sequence[float | None], **options: object) -> Chart:
    names = ("mean", "max", "p50")
    lines = [series(values, name) for values, name in zip(of, names, strict=False)]
    steps = range(1, len(of[0]) + 1)
    return Chart(title="Reward", unit="", steps=steps, series=lines, **options)  # pyright: ignore[reportArgumentType]


def read(html: str) -> ElementTree.Element:
    return ElementTree.fromstring(html)


def of_class(root: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [each for each in root.iter() if kind in each.get("class", "").split()]


def drawn_points(root: ElementTree.Element) -> Iterator[tuple[float, float]]:
    for path in root.iter("path"):
        yield from ((float(x), float(y)) for x, y in PAIR.findall(path.get("d", "")))
    for dot in root.iter("circle"):
        yield float(dot.get("cx", "nan")), float(dot.get("cy", "nan"))


@settings(deadline=None)
@given(values=measured, others=measured, wide=st.booleans(), bound=st.none() | numbers)
def test_every_point_is_inside_the_box(
    values: list[float | None], others: list[float | None], wide: bool, bound: float | None
) -> None:
    size = min(len(values), len(others))
    values, others = values[:size], others[:size]
    made = chart(values, others, band=(values, others), wide=wide, bound=bound)
    root = read(drawn(made))
    right = (WIDE if wide else HALF) - RIGHT
    for x, y in drawn_points(root):
        assert LEFT - 0.1 <= x <= right + 0.1
        assert TOP - 0.1 <= y <= made.height - FOOT + 0.1


@given(measured)
def test_a_curve_has_a_piece_for_each_stretch_and_a_dot_for_each_lone_point(
    values: list[float | None],
) -> None:
    root = read(drawn(chart(values)))
    told = "".join("." if value is None else "x" for value in values)
    stretches = re.findall("x+", told)
    paths = [path.get("d", "") for path in of_class(root, "curve")]
    assert sum(path.count("M") for path in paths) == sum(len(each) > 1 for each in stretches)
    lone = sum(len(each) == 1 for each in stretches)
    ends = 1 if stretches and len(stretches[-1]) > 1 else 0
    assert len(list(root.iter("circle"))) == lone + ends


def test_higher_is_further_up_and_later_further_right() -> None:
    path = of_class(read(drawn(chart([0.1, 0.3, 0.2]))), "curve")[0]
    (x1, y1), (x2, y2), (x3, y3) = [
        (float(x), float(y)) for x, y in PAIR.findall(path.get("d", ""))
    ]
    assert x1 < x2 < x3
    assert y2 < y3 < y1


def test_lines_are_named_at_their_ends_in_their_order() -> None:
    root = read(drawn(chart([1.0, 1.0], [9.0, 9.0])))
    heights = {label.text: float(label.get("y", "nan")) for label in of_class(root, "name")}
    assert heights["max"] < heights["mean"]


def test_a_line_without_a_value_has_no_name() -> None:
    root = read(drawn(chart([1.0, 2.0], [None, None])))
    assert [label.text for label in of_class(root, "name")] == ["mean"]


def test_a_band_is_only_where_both_of_its_ends_were_measured() -> None:
    low, high = [0.1, 0.1, None, 0.1, 0.1], [0.3, 0.3, 0.3, None, 0.3]
    root = read(drawn(chart([0.2] * 5, band=(low, high))))
    assert of_class(root, "band")[0].get("d", "").count("M") == 2
    nothing = read(drawn(chart([0.2] * 2, band=([None, 0.1], [0.3, None]))))
    assert of_class(nothing, "band") == []


def test_a_bound_is_drawn_and_held_by_the_axis_though_nothing_comes_near() -> None:
    root = read(drawn(chart([0.001, 0.002], bound=0.025)))
    (line,) = of_class(root, "bound")
    assert TOP < float(line.get("y1", "nan")) < 190 - FOOT
    assert "0.025" in [label.text for label in root.iter("text")]


def test_a_spike_among_thousands_of_steps_can_be_seen() -> None:
    values = [1.0] * 5000
    values[2345] = 10.0
    root = read(drawn(chart(values)))
    heights = [y for _, y in drawn_points(root)]
    assert min(heights) == pytest.approx(TOP, abs=0.1)
    assert len(heights) < 600


def test_words_of_a_drawing_are_text() -> None:
    made = Chart(title="<b>", unit='"', steps=[1], series=[series([1.0], "<script>")])
    root = read(drawn(made))
    assert [label.text for label in of_class(root, "name")] == ["<script>"]
    assert list(root.iter("script")) == []


def stack(*of: Sequence[float | None], shares: bool = False) -> Stack:
    parts = [series(values, f"part{n}", f"c{n}") for n, values in enumerate(of)]
    steps = range(1, len(of[0]) + 1)
    return Stack(title="Time", unit="%", steps=steps, parts=parts, shares=shares)


@settings(deadline=None)
@given(st.lists(st.tuples(st.none() | numbers, st.none() | numbers), min_size=1, max_size=400))
def test_shares_of_a_column_are_the_whole_or_nothing(
    rows: list[tuple[float | None, float | None]],
) -> None:
    made = columns(stack(*map(list, zip(*rows, strict=True)), shares=True))
    assert len(made) <= COLUMNS
    for column in made:
        assert min(column.parts) >= 0
        assert sum(column.parts) == pytest.approx(100) or sum(column.parts) == 0


def test_counts_are_means_where_a_column_is_of_several_steps() -> None:
    made = columns(stack([4.0, 6.0] * COLUMNS, [0.0, None] * COLUMNS))
    assert [column.parts for column in made] == [[5.0, 0.0]] * COLUMNS
    assert (made[0].first, made[0].last, made[-1].last) == (1, 2, 2 * COLUMNS)


def test_parts_lie_on_top_of_each_other_inside_the_box() -> None:
    root = read(stacked(stack([1.0, 3.0], [3.0, 1.0], [0.0, None], shares=True)))
    first, second = of_class(root, "part")
    assert [label.text for label in of_class(root, "name")] == ["part0", "part1"]
    tops = [re.findall(r"V([\d.]+)", each.get("d", "")) for each in (first, second)]
    bottoms = [re.findall(r" ([\d.]+)H", each.get("d", "")) for each in (first, second)]
    assert bottoms[1] == tops[0]
    assert tops[1] == [f"{TOP:.1f}"] * 2
    assert bottoms[0] == [f"{190 - FOOT:.1f}"] * 2


def test_columns_are_over_their_own_steps() -> None:
    """A step that is missing leaves room."""
    made = Stack(title="", unit="", steps=[1, 2, 4], parts=[series([1.0, 1.0, 1.0])])
    path = of_class(read(stacked(made)), "part")[0].get("d", "")
    edges = [float(x) for x in re.findall(r"M([\d.]+)", path)]
    width = (HALF - LEFT - RIGHT) / 4
    assert edges == pytest.approx([LEFT, LEFT + width, LEFT + 3 * width], abs=0.1)
