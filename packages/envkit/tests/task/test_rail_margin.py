# SPDX-License-Identifier: Apache-2.0
import dataclasses
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

STEADY = settings(deadline=None, derandomize=True)
TASK = "rail-margin"
FULL = {"reward": 1.0, "adjusted_ebitda": 1, "margin": 1, "finance_note": 1}
NONE = {"reward": 0.0, "adjusted_ebitda": 0, "margin": 0, "finance_note": 0}


type Play = Any
"""`Play` of conftest.py."""


@pytest.fixture(scope="module")
def verify(load_verifier: Callable[[str], ModuleType]) -> ModuleType:
    return load_verifier(TASK)


RIGHT = [
    "Adjusted EBITDA: 13,957\nAdjusted EBITDA margin: 15.4 %\nFinance note: FN-2025-07",
    "**Adjusted EBITDA:** €13,957k\n**Adjusted EBITDA margin:** 15.4%\n**Note:** FN-2025-07",
    "| Item | Value |\n|---|---|\n| Adjusted EBITDA | 13 957 |\n"
    "| Adjusted EBITDA margin | 15,4 % |\n| Finance note | FN-2025-07 |",
    "1. Adjusted EBITDA: EUR 13.957 million\n2. Adjusted EBITDA margin: 15.36 percent\n"
    "3. Finance note: FN 2025/07",
    '{"adjusted_ebitda": 13957, "adjusted_ebitda_margin": 0.1536, "finance_note": "FN-2025-07"}',
    "Under FN-2025-07 Rail's adjusted EBITDA in 2025 was 13,957 thousand euros, which is a margin "
    "of 15.4 per cent of net revenue.",
    "Adjusted EBITDA (Rail, FY 2025, EUR thousand): 13,957 (8,094 + 6,748 + 1,265 - 2,150)\n"
    "Adjusted EBITDA margin: 13,957 / 90,888 = 15.4%\n"
    "Finance note: FN-2025-07 (replaces draft FN-2025-04)",
    "Adjusted EBITDA: 8,094 + 6,748 + 1,265 \N{MINUS SIGN} 2,150 = 13,957\n"
    "Adjusted EBITDA margin: 15.4 %, not 17.1 %\n"
    "Finance note: FN-2025-07, which supersedes draft FN-2025-04",
    "adjusted ebitda\n13.957\nadjusted ebitda margin\n15.4\nfinance note\nFN-2025-07",
    "Adjusted EBITDA: 13,957,000 EUR\nAdjusted EBITDA margin: 15.4 pct\nNote: fn-2025-07",
    "Adjusted EBITDA: €13.96m\nAdjusted EBITDA margin: 15.4%\nFinance note: FN-2025-7",
    "Rail earned 13,957 and kept 15.4 % (FN-2025-07).",
    "Adjusted EBITDA: TEUR 13.957,0\nAdjusted EBITDA margin: 15,4%\nNote: FN\N{EN DASH}2025-07",
    "Adjusted EBITDA: 13'957 kEUR\nAdjusted EBITDA margin = 15.4%\nNote number: FN-2025-07",
]


@pytest.mark.parametrize("text", RIGHT)
def test_a_right_answer_counts_however_it_is_written(verify: ModuleType, text: str) -> None:
    assert verify.judge(text) == {"adjusted_ebitda": 1, "margin": 1, "finance_note": 1}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        (
            "Adjusted EBITDA: 16,495\nAdjusted EBITDA margin: 17.1 %\nFinance note: FN-2025-04",
            set(),
        ),
        (
            "Adjusted EBITDA: 13,957\nAdjusted EBITDA margin: 14.5 %\nFinance note: FN-2025-07",
            {"adjusted_ebitda", "finance_note"},
        ),
        (
            "Adjusted EBITDA: 16,107\nAdjusted EBITDA margin: 17.7 %\nFinance note: FN-2025-07",
            {"finance_note"},
        ),
        ("Adjusted EBITDA: 13,957 or 16,495\nAdjusted EBITDA margin: 15.4 % or 17.1 %", set()),
        ("15.4 % 17.1 % 14.5 % 13,957 16,495 FN-2025-07 FN-2025-04", set()),
        ("Adjusted EBITDA: 14 million\nAdjusted EBITDA margin: 15 %", set()),
        ("Adjusted EBITDA: 13,957.0 million\nAdjusted EBITDA margin: 1.54 %", set()),
        ("Adjusted EBITDA: -13,957\nAdjusted EBITDA margin: -15.4 %\nNote: FN-2025-17", set()),
        ("Adjusted EBITDA: 13,957 %\nAdjusted EBITDA margin: 13,957", set()),
        ("Adjusted EBITDA margin: 15.4 %\nAdjusted EBITDA margin: 17.1 %", set()),
        ("The answer is in /filesystem/results/segment_results_2025.pdf.", set()),
    ],
)
def test_a_near_miss_gets_what_it_earned(verify: ModuleType, text: str, holds: set[str]) -> None:
    assert {name for name, value in verify.judge(text).items() if value} == holds


@STEADY
@given(st.text() | st.text("adjusted EBITDA margin note FN-20257:|=()%€k,. \n0123456789"))
def test_any_text_is_judged(verify: ModuleType, text: str) -> None:
    assert set(verify.judge(text).values()) <= {0, 1}


@STEADY
@given(st.sampled_from(RIGHT), st.integers(0, 200), st.text("0123456789.,%-", min_size=1))
def test_a_right_answer_with_digits_thrown_in_is_judged(
    verify: ModuleType, text: str, place: int, noise: str
) -> None:
    assert set(verify.judge(text[:place] + noise + text[place:]).values()) <= {0, 1}


@pytest.mark.parametrize(
    "text", ["9" * 60_000, "1 111" * 12_000, "margin " * 9_000, "FN-2025-07 " * 6_000, "=" * 60_000]
)
def test_a_long_answer_is_judged_in_time(verify: ModuleType, text: str) -> None:
    assert verify.judge(f"Adjusted EBITDA: {text}")["margin"] == 0


def test_the_untouched_world_earns_exactly_nothing(play: Callable[[str], Play]) -> None:
    assert play(TASK).verify() == NONE


def test_the_oracle_earns_the_full_reward(play: Callable[[str], Play]) -> None:
    trial = play(TASK)
    trial.solve()
    assert trial.verify() == FULL


def test_the_recorded_calls_earn_the_full_reward(play: Callable[[str], Play]) -> None:
    trial = play(TASK)
    trial.replay()
    assert trial.verify() == FULL


def test_the_decoy_earns_nothing(play: Callable[[str], Play], documents: Path) -> None:
    trial = play(TASK)
    trial.answer((documents / "board/fy2025_first_look.md").read_text())
    assert trial.verify() == NONE


@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe" * 999, b"PK\x03\x04"])
def test_an_answer_that_is_no_text_earns_nothing(
    play: Callable[[str], Play], content: bytes
) -> None:
    trial = play(TASK)
    (trial.logs / "artifacts/final_answer.txt").write_bytes(content)
    assert trial.verify() == NONE


def test_a_directory_as_answer_earns_nothing(play: Callable[[str], Play]) -> None:
    trial = play(TASK)
    (trial.logs / "artifacts/final_answer.txt").mkdir()
    assert trial.verify() == NONE


def test_no_reward_where_the_artifacts_did_not_arrive(play: Callable[[str], Play]) -> None:
    trial = play(TASK)
    shutil.rmtree(trial.logs / "artifacts")
    assert "did not arrive" in trial.verify_fails()


def test_no_reward_where_the_verifier_is_damaged(
    play: Callable[[str], Play], tmp_path: Path
) -> None:
    trial = play(TASK)
    tests = shutil.copytree(trial.task / "tests", tmp_path / "damaged/tests")
    claims = tests / "claims.py"
    claims.write_text(claims.read_text().replace("FN[", "NF["))
    damaged = dataclasses.replace(trial, task=tests.parent)
    assert "cannot judge" in damaged.verify_fails()


def test_no_reward_where_there_is_no_interpreter(
    play: Callable[[str], Play], tmp_path: Path
) -> None:
    trial = play(TASK)
    script = str(trial.task / "tests/test.sh")
    env = {"PATH": str(tmp_path), "LOGS_ROOT": str(trial.logs)}
    done = subprocess.run(["/bin/sh", script], env=env, capture_output=True, timeout=60)
    assert done.returncode != 0
    assert not (trial.logs / "verifier").exists()


def test_the_recording_has_the_calls_that_a_preflight_counts_on(
    play: Callable[[str], Play],
) -> None:
    lines = (play(TASK).task / "solution/calls.jsonl").read_text().splitlines()
    tools = [json.loads(line).get("tool") for line in lines]
    assert len(tools) >= 7
    assert {
        "filesystem_server_list_files",
        "pdf_server_read_pdf_pages",
        "code_execution_server_code_exec",
    } <= set(tools)
