# SPDX-License-Identifier: Apache-2.0
"""What trajectories come to, counted."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

from rich.console import Console

from envkit.preflight.report import could_not_run
from envkit.run.figures import Figures, seen
from envkit.run.report import RunReport, document, show
from envkit.trajectory.types import Stop, Trajectory

from ..trajectory.rows import trajectory


def ended_by(row: Trajectory, stop: Stop) -> Trajectory:
    return replace(row, episode=replace(row.episode, stop=stop))


def figures(*rows: Trajectory) -> Figures:
    made = Figures()
    for row in rows:
        made.add(row)
    return made


def test_tokens_turns_calls_and_stops_are_counted() -> None:
    rows = [trajectory(f"a__00{n}", seed=n, turns=n + 1) for n in range(3)]
    made = figures(ended_by(rows[0], Stop.CONTEXT), *rows[1:])
    told = made.to_json()
    assert told["trajectories"] == 3
    assert sum(told["stops"].values()) == 3
    assert told["stops"]["context"] == 1
    assert told["tokens"] == sum(len(row.episode.stream.token_ids) for row in rows)
    assert told["sampled_tokens"] == sum(int(row.episode.stream.loss_mask.sum()) for row in rows)
    assert told["tool_calls"] == sum(len(row.episode.calls) for row in rows)
    assert told["weight_versions"] == [7]
    assert told["each"]["turns"]["n"] == 3


def test_nothing_measured_is_none_and_not_zero() -> None:
    told = Figures().to_json()
    assert told["sampled_tokens_per_s"] is None
    assert set(told["each"].values()) == {None}
    assert Figures().calls_ok is None


def test_speed_is_of_the_requests_own_time() -> None:
    row = trajectory(seed=1)
    spent = sum(request.seconds for request in row.episode.requests)
    assert figures(row).tokens_per_s == seen(row).sampled_tokens / spent


def with_calls(name: str, *worked: bool) -> Trajectory:
    """A trajectory with so many calls."""
    row = trajectory(name, seed=1, turns=4)
    (call, *_) = row.episode.calls
    calls = tuple(replace(call, call_id=f"c{n}", ok=ok) for n, ok in enumerate(worked))
    return replace(row, episode=replace(row.episode, calls=calls))


def test_a_share_of_calls_is_of_all_calls_together() -> None:
    rows = [with_calls("a", True), with_calls("b", True, True), with_calls("c", False, False, True)]
    assert figures(*rows).calls_ok == 4 / 6
    assert figures(*rows * 10).calls_ok == 4 / 6
    assert figures(with_calls("a")).calls_ok is None


def shown(report: RunReport) -> str:
    out = io.StringIO()
    show(report, Console(file=out, width=120))
    return out.getvalue()


def test_damage_is_said_as_plain_text_and_bounded() -> None:
    damage = tuple(f"segment-{n}: [red]its bytes\x1b[2J" for n in range(12))
    report = RunReport(trials=could_not_run(["nothing"]), figures=Figures(), damage=damage)
    text = shown(report)
    assert text.count("[red]its bytes") == 10
    assert "and 2 more, in report.json" in text
    assert "\x1b" not in text
    told: dict[str, Any] = document(report)
    assert told["trajectories"]["damage"] == list(damage)
    assert told["verdict"] == "COULD_NOT_RUN"


def test_a_run_says_how_its_trajectories_ended() -> None:
    rows = [ended_by(trajectory(seed=n), Stop.FINAL) for n in range(3)]
    report = RunReport(
        trials=could_not_run(["nothing"]),
        figures=figures(*rows, ended_by(trajectory(seed=4), Stop.CONTEXT)),
    )
    text = shown(report)
    assert "4 trajectories stored; ended by: final 3, context 1" in text
    assert "context used up in 1 (25 %)" in text
