# SPDX-License-Identifier: Apache-2.0
"""Figures of a run are of all its trajectories together, and not of sums of shares."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from envkit.run.figures import Figures
from envkit.trajectory.types import Trajectory

from ..trajectory.rows import trajectory


def figures_of(rows: Iterable[Trajectory]) -> Figures:
    figures = Figures()
    for row in rows:
        figures.add(row)
    return figures


def with_calls(name: str, *worked: bool) -> Trajectory:
    """A trajectory with so many calls."""
    row = trajectory(name, seed=1, turns=4)
    (call, *_) = row.episode.calls
    calls = tuple(replace(call, call_id=f"c{n}", ok=ok) for n, ok in enumerate(worked))
    return replace(row, episode=replace(row.episode, calls=calls))


def test_a_share_of_calls_is_of_all_calls_together() -> None:
    rows = [with_calls("a", True), with_calls("b", True, True), with_calls("c", False, False, True)]
    assert figures_of(rows).calls_ok == 4 / 6
    assert figures_of(rows * 10).calls_ok == 4 / 6


def test_a_share_of_nothing_is_none() -> None:
    assert figures_of([]).calls_ok is None
    assert figures_of([with_calls("a")]).calls_ok is None


def test_tokens_a_second_are_of_all_requests_together() -> None:
    rows = [trajectory("a", seed=1, turns=2), trajectory("b", seed=2, turns=5)]
    seconds = sum(each.seconds for row in rows for each in row.episode.requests)
    sampled = sum(row.episode.used.sampled_tokens for row in rows)
    assert figures_of(rows).tokens_per_s == sampled / seconds
