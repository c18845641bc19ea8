# SPDX-License-Identifier: Apache-2.0
"""A report file read back: the page and the text made of it are those of the run."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from envkit.cli_show import show
from envkit.fault import HarnessError
from envkit.preflight.change_views import cells
from envkit.preflight.estimate import estimate, parse_training
from envkit.preflight.knee import ramp_of
from envkit.preflight.report import could_not_run
from envkit.preflight.report_html import to_html
from envkit.preflight.report_json import to_json
from envkit.preflight.report_read import from_json, read_report
from envkit.preflight.types import Change, Comparison, Interval, Report

from .test_ramp_views import level
from .test_report_files import clean_report, hostile_report, printed


def read_back(report: Report) -> Report:
    return from_json(orjson.loads(orjson.dumps(to_json(report))))


def measured(make: Any) -> Report:
    """With all that can be asked for beside a run."""
    report = hostile_report(make)
    point = Interval(value=1.5, low=1.1, high=2.0)
    none = Interval(value=None, low=None, high=None)
    changes = [
        Change(
            measure=name, unit="s", before=1.0, now=1.5, n_before=8, n_now=9, ratio=ratio,
            p=0.001, p_adjusted=0.002, verdict="worse",
        )
        for name, ratio in (("act", point), ("faults", none))
    ]  # fmt: skip
    assert report.plan
    return replace(
        report,
        plan=replace(report.plan, chaos=Path("rules.toml")),
        comparison=Comparison(baseline="before/report.json", changes=tuple(changes)),
        estimate=estimate(report.records, parse_training("steps=2,prompts=2,samples=2"), 4),
        ramp=ramp_of([level(2, 1.0, 3.0), level(8, 2.0, 6.0)]),
    )


@pytest.mark.parametrize("which", [clean_report, hostile_report, measured])
def test_the_page_and_the_text_are_those_of_the_run(which: Any, make: Any) -> None:
    report = which(make)
    again = read_back(report)
    assert to_html(again) == to_html(report)
    assert printed(again) == printed(report)


def test_what_was_measured_is_there_to_be_read(make: Any) -> None:
    again = read_back(measured(make))
    assert again.comparison
    assert cells(again.comparison.changes[0])[-1] == "worse"
    assert again.course.readings
    assert "faults were injected by rules.toml" in printed(again)
    assert again.course.lanes


def test_the_report_of_a_run_that_never_started_is_read_too() -> None:
    report = could_not_run(["no user namespaces"])
    assert to_html(read_back(report)) == to_html(report)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is no JSON"),
        ("[]", "schema is None"),
        ('{"schema": "envkit.preflight/2"}', "this version reads envkit.preflight/1"),
        ('{"schema": "envkit.preflight/1"}', "older version, or malformed"),
    ],
)
def test_what_is_no_report_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "report.json").write_text(text)
    with pytest.raises(HarnessError, match=says) as caught:
        read_report(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_directory_without_a_report_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="name a directory of --report"):
        read_report(tmp_path)


def test_a_field_that_is_missing_is_named(make: Any, tmp_path: Path) -> None:
    told = json.loads(orjson.dumps(to_json(clean_report(make))))
    del told["course"]
    (tmp_path / "report.json").write_text(json.dumps(told))
    with pytest.raises(HarnessError, match="'course'"):
        read_report(tmp_path)


def test_a_report_is_shown_again_as_it_was_and_its_page_written(
    make: Any, tmp_path: Path, capsys: Any
) -> None:
    report = hostile_report(make)
    (tmp_path / "report.json").write_bytes(orjson.dumps(to_json(report)))
    show(tmp_path, tmp_path / "again.html")
    assert capsys.readouterr().out == printed(report)
    assert (tmp_path / "again.html").read_text() == to_html(report)


def test_a_page_that_cannot_be_written_is_one_line_and_nothing_is_shown(
    make: Any, tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "report.json").write_bytes(orjson.dumps(to_json(clean_report(make))))
    with pytest.raises(HarnessError, match="--html"):
        show(tmp_path, tmp_path / "nowhere" / "again.html")
    assert capsys.readouterr().out == ""
