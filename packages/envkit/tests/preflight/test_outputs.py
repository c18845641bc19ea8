# SPDX-License-Identifier: Apache-2.0
"""JUnit XML, Markdown and the quarantine list of a run: what build systems and people read."""

import asyncio
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envkit.fault import HarnessError, ServerDisconnected
from envkit.preflight.estimate import estimate, parse_training
from envkit.preflight.junit import to_junit
from envkit.preflight.levels import plans_of, whole
from envkit.preflight.markdown import code, table, to_markdown
from envkit.preflight.outputs import check_outputs, write_outputs
from envkit.preflight.quarantine import read
from envkit.preflight.ramp import run_ramp
from envkit.preflight.report import could_not_run
from envkit.preflight.run import run
from envkit.preflight.types import Change, Comparison, Interval, Leftover, Report, Verdict

HOSTILE = "</failure>]]>\x1b[2J\x00\u202e`|\n# @everyone [x](http://y) <img src=x>"


def mixed(make: Any) -> Report:
    """One clean trial, one run again, one wrong reward, one without any."""
    plan = make.plan(("fact",), 4)
    died = make.attempt(reward=None, faults=(make.fault(ServerDisconnected(HOSTILE)),))
    logs = plan.specs[3].out_dir / plan.specs[3].trial_id
    logs.mkdir(parents=True, exist_ok=True)
    (logs / "trial.log").write_text(HOSTILE)
    script = {
        "fact__001": make.record(plan.specs[1], died, make.attempt(2)),
        "fact__002": make.record(plan.specs[2], make.attempt(reward=0.5)),
        "fact__003": make.record(plan.specs[3], died),
    }
    launcher = make.launcher(
        script=script, leftover=[(), (Leftover(kind="process", what="9 sleep"),)]
    )
    return asyncio.run(run(plan, launcher, make.view(), supplies=make.roomy, settle_s=0.0))


def cases(report: Report) -> dict[str, ET.Element]:
    return {
        str(case.get("name")): case for case in ET.fromstring(to_junit(report)).iter("testcase")
    }


def test_a_test_case_a_trial_and_one_for_the_gate(make: Any) -> None:
    assert list(cases(mixed(make))) == ["fact__000", "fact__001", "fact__002", "fact__003", "gate"]


def test_a_wrong_reward_is_a_failure_and_a_lost_one_an_error(make: Any) -> None:
    found = cases(mixed(make))
    assert [child.tag for child in found["fact__000"]] == ["properties"]
    failure = found["fact__002"].find("failure")
    assert failure is not None
    assert (failure.get("type"), failure.get("message")) == ("WrongReward", "earned 0.5")
    assert "envkit preflight" in (failure.text or "")
    error = found["fact__003"].find("error")
    assert error is not None
    assert error.get("type") == "ServerDisconnected"
    assert found["fact__003"].find("failure") is None
    log = found["fact__003"].find("system-err")
    assert log is not None
    assert "--- trial.log" in (log.text or "")


def test_a_trial_that_was_run_again_is_no_failure_and_is_told(make: Any) -> None:
    case = cases(mixed(make))["fact__001"]
    assert case.find("failure") is None
    assert case.find("error") is None
    assert "run again, earned 1" in (case.findtext("system-out") or "")


def test_what_breaches_the_gate_is_red_though_no_trial_is(make: Any) -> None:
    failure = cases(mixed(make))["gate"].find("failure")
    assert failure is not None
    assert "left behind: 1 process" in (failure.text or "")


def test_the_counts_are_those_of_the_cases(make: Any) -> None:
    root = ET.fromstring(to_junit(mixed(make)))
    suite = root.find("testsuite")
    assert suite is not None
    for each in (root, suite):
        counts = {name: each.get(name) for name in ("tests", "failures", "errors", "skipped")}
        assert counts == {"tests": "5", "failures": "2", "errors": "1", "skipped": "0"}
    properties = {p.get("name"): p.get("value") for p in suite.findall("properties/property")}
    assert properties["verdict"] == "FAIL"
    assert properties["concurrency"] == "4"


@pytest.mark.parametrize(
    ("verdict", "tag"),
    [
        (Verdict.COULD_NOT_RUN, "error"),
        (Verdict.INTERRUPTED, "skipped"),
        (Verdict.FAIL, "failure"),
        (Verdict.PASS, None),
    ],
)
def test_each_verdict_has_its_own_mark(verdict: Verdict, tag: str | None) -> None:
    gate = cases(replace(could_not_run(["no user namespaces"]), verdict=verdict))["gate"]
    marks = [child.tag for child in gate if child.tag in ("error", "skipped", "failure")]
    assert marks == ([tag] if tag else [])


def test_hostile_text_is_text_in_the_xml(make: Any) -> None:
    document = to_junit(mixed(make))
    assert not re.search(rb"[\x00-\x08\x0b-\x1f]", document)
    assert "\u202e" not in document.decode()
    error = cases(mixed(make))["fact__003"].find("error")
    assert error is not None
    assert "</failure>]]> [2J" in str(error.get("message"))


def test_what_xml_cannot_hold_is_left_out_wherever_it_stands() -> None:
    document = to_junit(could_not_run([HOSTILE]))
    assert not re.search(rb"[\x00-\x08\x0b-\x1f]", document)
    assert ET.fromstring(document).find(".//error") is not None


def test_a_task_with_a_dot_is_one_name(make: Any) -> None:
    plan = make.plan(("v1.2 task",), 1)
    report = asyncio.run(run(plan, make.launcher(), make.view(), supplies=make.roomy))
    assert cases(report)["v1.2 task__000"].get("classname") == "envkit.preflight.v1_2 task"


def test_the_markdown_says_the_verdict_first_and_names_what_failed(make: Any) -> None:
    lines = to_markdown(mixed(make)).splitlines()
    assert lines[0] == "## envkit preflight: FAIL"
    text = "\n".join(lines)
    assert "`fact__002`: `earned 0.5`" in text
    assert "| `fact` | `wrong_reward` |" in text
    assert "### Failed trials" in text
    assert "| `act` | 5 | 2.0 s |" in text


def test_hostile_text_stays_in_its_code_span(make: Any) -> None:
    text = to_markdown(mixed(make))
    assert "\x1b" not in text
    outside = re.sub(r"`[^`]*`", "", text)
    for markup in ("@everyone", "](http", "<img", "</failure>"):
        assert markup not in outside
    assert not re.search(r"^# ", text, re.MULTILINE)


@given(st.text())
def test_any_text_is_one_code_span_that_ends_no_cell(text: str) -> None:
    span = code(text)
    assert "\n" not in span
    assert "|" not in span
    assert span.count("`") in (0, 2)


def test_a_table_has_as_many_bars_in_every_line() -> None:
    assert table(["a", "b"], [[1, "x"], [2, "y"]]) == [
        "| a | b |", "| --- | --- |", "| 1 | x |", "| 2 | y |",
    ]  # fmt: skip


def everything(make: Any) -> Report:
    plan = make.plan(samples=4)
    plans = plans_of(plan, (2, 8), None)
    work = run_ramp(
        whole(plan, plans), plans, lambda _: make.launcher(), lambda _: make.view(),
        supplies=make.roomy, settle_s=0.0,
    )  # fmt: skip
    report = asyncio.run(work)
    change = Change(
        measure=HOSTILE, unit="s", before=1.0, now=1.5, n_before=8, n_now=8,
        ratio=Interval(value=1.5, low=1.2, high=1.8), p=0.001, p_adjusted=0.01, verdict="worse",
    )  # fmt: skip
    return replace(
        report,
        comparison=Comparison(baseline=HOSTILE, changes=(change,)),
        estimate=estimate(report.records, parse_training("steps=2,prompts=2,samples=2"), 8),
    )


def test_a_ramp_a_comparison_and_an_estimate_are_in_the_markdown(make: Any) -> None:
    text = to_markdown(everything(make))
    assert "| at once | trials | trials/s |" in text
    assert "throughput still grows at 8" in text
    assert "`1.50 (1.20 to 1.80)`" in text
    assert "2 steps of 2 prompts x 2 samples: 8 trials, 8 at once" in text
    assert "@everyone" not in re.sub(r"`[^`]*`", "", text)


def test_each_file_that_was_asked_for_is_written(make: Any, tmp_path: Path) -> None:
    files = {"junit": tmp_path / "j.xml", "markdown": tmp_path / "m.md", "quarantine": None}
    write_outputs(files, mixed(make))
    assert sorted(path.name for path in tmp_path.glob("*.*")) == ["j.xml", "m.md"]
    write_outputs({"quarantine": tmp_path / "q.json"}, mixed(make))
    assert [each.task for each in read(tmp_path / "q.json")] == ["fact"]


@pytest.mark.parametrize("form", ["junit", "markdown", "quarantine"])
def test_a_file_that_could_not_be_written_is_refused_before_the_run(
    tmp_path: Path, form: str
) -> None:
    with pytest.raises(HarnessError, match=f"--{form} .*its directory is not there"):
        check_outputs({form: tmp_path / "no" / "x"})
    with pytest.raises(HarnessError, match=f"--{form} .*is a directory"):
        check_outputs({form: tmp_path})
    check_outputs({form: tmp_path / "x"})
    check_outputs({form: None})
