# SPDX-License-Identifier: Apache-2.0
"""A ramp as it is shown: the same cells everywhere, the knee marked where there is one."""

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from envkit.preflight.knee import level_of, ramp_of
from envkit.preflight.ramp_views import HEAD, bar, cells, plot, text
from envkit.preflight.report import could_not_run
from envkit.preflight.types import Interval, Level, Quantiles, Ramp


def level(at: int, per_s: float, p95: float) -> Level:
    return replace(
        level_of(could_not_run(["x"]), at),
        trials=tuple(f"a__{n:03d}" for n in range(at)),
        per_s=per_s,
        trial_s=Quantiles(n=at, p50=p95 / 2, p95=p95, p99=p95, max=p95),
        fault_rate=Interval(value=0.0, low=0.0, high=0.1),
        peak_memory_mib=55.0 * at,
        peak_live=at,
    )


def shown(ramp: Ramp) -> str:
    console = Console(width=120, file=io.StringIO(), _environ={})
    for part in text(ramp):
        console.print(part)
    return console.file.getvalue()  # type: ignore[attr-defined]


THREE = ramp_of([level(8, 1.5, 5.0), level(64, 3.0, 20.0), level(256, 3.1, 80.0)])


def test_the_text_has_a_row_and_a_bar_a_level_and_marks_the_knee() -> None:
    lines = shown(THREE).splitlines()
    assert lines[0].split()[:2] == ["at", "once"]
    assert [line.split()[0] for line in lines[1:4]] == ["8", "64", "256"]
    assert [line.split()[0] for line in lines[5:8]] == ["8", "64", "256"]
    assert [line.endswith("<- knee") for line in lines[5:8]] == [False, True, False]
    assert lines[8].startswith("knee at 64: 3.00 trials/s, p95 20.0 s a trial, faults 0 %")
    assert max(len(line) for line in lines) <= 120


def test_bars_are_as_long_as_throughput_is_high() -> None:
    lengths = [bar(each, 3.1, is_knee=False).count("█") for each in THREE.levels]
    assert lengths == [19, 39, 40]
    assert bar(level(8, 0.0, 1.0), 0.0, is_knee=False).count("█") == 0


def test_where_throughput_still_grows_no_knee_is_marked() -> None:
    growing = ramp_of([level(8, 1.0, 5.0), level(64, 8.0, 5.0)])
    assert "<- knee" not in shown(growing)
    assert "still grows at 64" in shown(growing)
    assert "vertical line" not in plot(growing)


def test_there_are_as_many_cells_as_columns_also_where_nothing_was_measured() -> None:
    empty = level_of(could_not_run(["x"]), 8)
    for each in (*THREE.levels, empty):
        assert len(cells(each)) == len(HEAD)
    assert cells(empty)[4:6] == ("n/a", "n/a")


def test_the_plot_has_a_dot_a_level_and_measure_inside_the_drawing() -> None:
    drawn = plot(THREE)
    assert drawn.count("<circle") == 6
    assert "the vertical line is the knee" in drawn
    for name, top in (("cx", 960), ("cy", 260)):
        places = [float(value) for value in re.findall(f'{name}="([0-9.]+)"', drawn)]
        assert all(0 <= place <= top for place in places)


@pytest.mark.parametrize("levels", [[], [level(8, 1.0, 1.0)]])
def test_less_than_two_levels_are_no_curve(levels: list[Level]) -> None:
    assert plot(ramp_of(levels)) == ""
