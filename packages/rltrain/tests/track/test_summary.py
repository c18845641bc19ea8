# SPDX-License-Identifier: Apache-2.0
from collections.abc import Mapping
from pathlib import Path

import pytest

from rltrain.refused import Refused
from rltrain.track.run import read_run
from rltrain.track.summary import (
    Extent,
    Reward,
    Summary,
    duration,
    figure,
    lines,
    summarise,
)

from .runs import run

STEPS: dict[int, dict[str, float | None]] = {
    3: {
        "reward/mean": 0.2,
        "reward/fault_share": 0.1,
        "reward/low": 0.18,
        "reward/high": 0.28,
        "reward/count": 16,
        "loss/entropy": 0.9,
        "logprob/difference": 0.01,
        "optimizer/gradient_norm": 4.0,
        "seconds/total": 50,
        "seconds/read": 9,
    },
    4: {
        "reward/mean": 0.25,
        "reward/fault_share": 0.5,
        "reward/low": 0.125,
        "reward/high": 0.625,
        "reward/count": 16,
        "loss/entropy": 0.6,
        "logprob/difference": 0.03,
        "optimizer/gradient_norm": 1.0,
        "seconds/read": 10,
        "seconds/step": 20,
    },
    5: {"reward/mean": None, "reward/fault_share": 1.0, "loss/entropy": 0.7},
}


def summary(path: Path, steps: Mapping[int, Mapping[str, float | None]]) -> Summary:
    return summarise(read_run(run(path, steps)))


def test_the_figures_of_a_run(tmp_path: Path) -> None:
    assert summary(tmp_path, STEPS) == Summary(
        steps=3,
        last_step=5,
        reward=Reward(step=4, mean=0.25, fault_share=0.5, low=0.125, high=0.625, count=16),
        entropy=Extent(first=0.9, last=0.7, worst=0.9, worst_step=3, steps=3),
        logprob_difference=Extent(first=0.01, last=0.03, worst=0.03, worst_step=4, steps=2),
        unhealthy_steps=1,
        gradient_norm=Extent(first=4.0, last=1.0, worst=4.0, worst_step=3, steps=2),
        seconds=80.0,
        remark="",
    )


def test_three_lines_say_them(tmp_path: Path) -> None:
    assert lines(summary(tmp_path, STEPS)) == (
        "3 steps, the last one 5; total time 1 min 20 s",
        "reward 0.25 at step 4, fault share 50 %, bounds 0.125 to 0.625",
        "entropy 0.9 → 0.7; log-prob difference 0.03 last, 0.03 at worst (step 4), "
        "0.03 or more in 1 of 2; gradient norm 4 at worst (step 3)",
    )


def test_what_was_not_measured_says_so(tmp_path: Path) -> None:
    assert lines(summary(tmp_path, {})) == (
        "0 steps; total time not measured",
        "reward not measured",
        "entropy not measured; log-prob difference not measured; gradient norm not measured",
    )


def test_a_reward_never_stands_without_a_word_on_faults(tmp_path: Path) -> None:
    told = lines(summary(tmp_path, {1: {"reward/mean": 0.5}}))
    assert told[1] == "reward 0.5 at step 1, fault share not measured, bounds not measured"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "not measured"),
        (0.085, "85 ms"),
        (185, "3 min 05 s"),
        (3599.9, "1 h 00 min"),
        (7500, "2 h 05 min"),
        (4 * 86400, "4 d 00 h"),
    ],
)
def test_durations_are_written_as_a_person_does(value: float | None, words: str) -> None:
    assert duration(value) == words


@pytest.mark.parametrize(
    ("value", "words"), [(0.01234, "0.0123"), (1e-6, "1e-6"), (12345.6, "12,346"), (0.0, "0")]
)
def test_numbers_are_short(value: float, words: str) -> None:
    assert figure(value) == words


def test_a_run_without_a_step_is_a_run(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("")
    (tmp_path / "run.json").write_text("{}")
    assert read_run(tmp_path).steps == []


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000])
def test_a_damaged_manifest_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.toml").write_text("")
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(Refused, match=r"run\.json: is no JSON"):
        read_run(tmp_path)


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("")
    with pytest.raises(Refused, match=r"holds no run\.json; name a directory"):
        read_run(tmp_path)
