# SPDX-License-Identifier: Apache-2.0
"""What holds of every task of `halden-pryce` that is answered by labelled lines."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

STEADY = settings(deadline=None, derandomize=True)
CRITERIA = {
    "merrowfield-margin": ("fees", "staff_cost", "margin"),
    "tarnbrook-overcharge": ("invoice", "excess_hours", "credit"),
    "utilisation-gap": ("practice", "utilisation", "shortfall"),
}
LABELS = "Fees Staff cost Margin Invoice Excess hours Credit Practice Utilisation Shortfall"
each_task = pytest.mark.parametrize("task", CRITERIA)


type Play = Any
"""`Play` of conftest.py."""


def rewards(task: str, value: int) -> dict[str, float]:
    return {"reward": float(value), **dict.fromkeys(CRITERIA[task], value)}


@each_task
def test_the_untouched_world_earns_exactly_nothing(play: Callable[[str], Play], task: str) -> None:
    assert play(task).verify() == rewards(task, 0)


@each_task
def test_the_oracle_earns_the_full_reward(play: Callable[[str], Play], task: str) -> None:
    trial = play(task)
    trial.solve()
    assert trial.verify() == rewards(task, 1)


@each_task
def test_the_recorded_calls_earn_the_full_reward(play: Callable[[str], Play], task: str) -> None:
    trial = play(task)
    trial.replay()
    assert trial.verify() == rewards(task, 1)


@each_task
def test_what_the_recorded_code_prints_is_what_is_answered(
    play: Callable[[str], Play], task: str
) -> None:
    trial = play(task)
    calls = [json.loads(line) for line in read_calls(trial)]
    (code,) = [call["arguments"]["code"] for call in calls if "code" in call.get("arguments", {})]
    printed = trial.call(code).stdout.replace("+", "").replace("-2.6", "2.6")
    answer = calls[-1]["final_answer"]
    figures = [word for word in answer.replace("£", " ").split() if word[0].isdigit()]
    assert figures
    assert all(figure.removesuffix(".00") in printed for figure in figures), (printed, figures)


@each_task
def test_the_oracle_needs_three_files_at_least(play: Callable[[str], Play], task: str) -> None:
    read = {
        json.loads(line)["arguments"]["file_path"]
        for line in read_calls(play(task))
        if "pdf_server" in line
    }
    assert len(read) >= 3


@each_task
def test_without_a_file_that_it_needs_the_oracle_fails(
    play: Callable[[str], Play], task: str
) -> None:
    trial = play(task)
    shutil.rmtree(trial.files / "Finance")
    with pytest.raises(AssertionError):
        trial.solve()
    assert trial.verify() == rewards(task, 0)


@each_task
def test_the_recording_has_the_calls_that_a_preflight_counts_on(
    play: Callable[[str], Play], task: str
) -> None:
    tools = [json.loads(line).get("tool") for line in read_calls(play(task))]
    assert len(tools) >= 7
    assert {"pdf_server_read_pdf_pages", "code_execution_server_code_exec"} <= set(tools)


def read_calls(trial: Play) -> list[str]:
    return (trial.task / "solution/calls.jsonl").read_text(encoding="utf-8").splitlines()


@each_task
@STEADY
@given(text=st.text() | st.text(f"{LABELS}:=|()%£.,- \n0123456789"))
def test_any_text_is_judged(
    load_verifier: Callable[[str], ModuleType], task: str, text: str
) -> None:
    marks = load_verifier(task).judge(text)
    assert tuple(marks) == CRITERIA[task]
    assert set(marks.values()) <= {0, 1}


@each_task
@pytest.mark.parametrize("text", ["9" * 60_000, "1,111" * 12_000, "(" * 60_000, "=" * 60_000])
def test_a_long_line_is_judged(
    load_verifier: Callable[[str], ModuleType], task: str, text: str
) -> None:
    labels = ("Fees", "Margin", "Credit", "Utilisation", "Shortfall")
    answer = "\n".join(f"{label}: {text}" for label in labels)
    assert not any(load_verifier(task).judge(answer).values())


@each_task
@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe" * 999, b"PK\x03\x04"])
def test_an_answer_that_is_no_text_earns_nothing(
    play: Callable[[str], Play], task: str, content: bytes
) -> None:
    trial = play(task)
    (trial.logs / "artifacts/final_answer.txt").write_bytes(content)
    assert trial.verify() == rewards(task, 0)


@each_task
def test_no_reward_where_the_artifacts_did_not_arrive(
    play: Callable[[str], Play], task: str
) -> None:
    trial = play(task)
    shutil.rmtree(trial.logs / "artifacts")
    assert "did not arrive" in trial.verify_fails()


@each_task
def test_no_reward_where_the_verifier_is_damaged(
    play: Callable[[str], Play], task: str, tmp_path: Any
) -> None:
    trial = play(task)
    tests = shutil.copytree(trial.task / "tests", tmp_path / "damaged/tests")
    helper = tests / "answer.py"
    helper.write_text(helper.read_text().replace("re.match", "re.fullmatch"))
    damaged = dataclasses.replace(trial, task=tests.parent)
    assert "cannot judge" in damaged.verify_fails()


def test_the_tasks_read_answers_alike(play: Callable[[str], Play]) -> None:
    tasks = play("utilisation-gap").task.parent
    assert len({(tasks / task / "tests/answer.py").read_bytes() for task in CRITERIA}) == 1
