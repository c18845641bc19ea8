# SPDX-License-Identifier: Apache-2.0
"""A person in a hurry reads the verdict first, then why."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console

from rltrain.gates.causes import Cause
from rltrain.gates.figures import Figures, by_turn, histogram, worst
from rltrain.gates.options import Options
from rltrain.gates.report import Report, Scale, document
from rltrain.gates.show import show

from .test_figures import compared

OPTIONS = Options(store=Path("run"), policy=Path("policy"))
SCALE = Scale(rows=2, sampled=16, comparable={7: 16}, version=7, scored_rows=2)
CAUSE = Cause(
    code="other_policy", says="this is not it", evidence=("100 % is off",), todo="look at it"
)


def report(off: float, *causes: Cause) -> Report:
    rows = [compared({4: off}), compared({}, "task__001")]
    rollout = np.concatenate([each.row.sample.logprobs for each in rows])
    trainer = np.concatenate([each.trainer for each in rows])
    known = ~np.isnan(trainer)
    return Report(
        options=OPTIONS,
        causes=causes,
        scale=SCALE,
        notes=("something was taken for granted",),
        figures=Figures.of(rollout[known].astype(np.float64), trainer[known]),
        histogram=histogram(rows),
        turns=by_turn(rows),
        worst=worst(rows, lambda ids: "\x1b[31m\n" if len(ids) == 1 else "the [bold]text"),
    )


def printed(shown: Report) -> str:
    out = io.StringIO()
    show(shown, Console(file=out, width=120))
    return out.getvalue()


def test_a_pass_says_so_first() -> None:
    lines = printed(report(0.0)).splitlines()
    assert lines[0] == "PASS  mean difference 0 nats over 16 tokens; the limit is 0.03"
    assert not any("→" in line for line in lines)
    assert "rows       2 of 2 scored" in lines
    assert "version    7; comparable tokens by version: 7 (16)" in lines
    assert "note       something was taken for granted" in lines


def test_a_failure_says_why_before_any_figure() -> None:
    lines = printed(report(1.6, CAUSE)).splitlines()
    assert lines[:5] == [
        "FAIL  other policy  mean difference 0.1 nats over 16 tokens; the limit is 0.03",
        "",
        "other policy: this is not it",
        "  100 % is off",
        "  → look at it",
    ]


def test_what_a_trajectory_holds_is_not_obeyed() -> None:
    text = printed(report(1.6, CAUSE))
    assert "the [bold]text\\u001b[31m\\nthe [bold]text" in text
    assert "\x1b" not in text


def test_what_was_not_scored_has_no_figures() -> None:
    cause = replace(CAUSE, code="not_measured", evidence=(), todo="")
    lines = printed(Report(options=OPTIONS, causes=(cause,), scale=SCALE)).splitlines()
    assert lines[0] == "NOT MEASURED  nothing was scored"
    assert not any("worst tokens" in line for line in lines)


def test_the_document_holds_all_of_it_as_json() -> None:
    told = json.loads(json.dumps(document(report(1.6, CAUSE)), allow_nan=False))
    assert (told["verdict"], told["causes"][0]["code"]) == ("FAIL", "other_policy")
    assert told["options"]["store"] == "run"
    assert told["scale"]["comparable"] == {"7": 16}
    assert told["histogram"][-1]["high"] is None
    assert sum(each["tokens"] for each in told["histogram"]) == told["figures"]["tokens"] == 16
    assert [each["turn"] for each in told["turns"]] == [0, 1]
    assert len(told["worst"]) == 10
