# SPDX-License-Identifier: Apache-2.0
"""Rules of chaos: what is read, and what is refused in one line."""

import os
from pathlib import Path

import pytest

from envkit.fault import HarnessError
from envkit.preflight.chaos.expected import table
from envkit.preflight.chaos.rules import HANG_S, load_rules

ONE = '[[fault]]\nkind = "raise"\nphase = "start"\ncount = 1\n'


def write(folder: Path, text: str) -> Path:
    path = folder / "rules.toml"
    path.write_text(text)
    return path


def test_every_kind_in_every_phase_is_wanted(tmp_path: Path) -> None:
    text = """
seed = 7
hang_s = 5
[[fault]]
kind = ["raise", "timeout"]
phase = ["start", "collect"]
count = 3
[[fault]]
kind = "reset"
phase = "call"
rate = 0.25
task = "budget-*"
"""
    rules = load_rules(write(tmp_path, text), "local")
    assert (rules.seed, rules.hang_s) == (7, 5.0)
    found = [(w.phase, w.kind, w.count, w.rate, w.task) for w in rules.wanted]
    assert found == [
        ("start", "raise", 3, 0.0, "*"),
        ("start", "timeout", 3, 0.0, "*"),
        ("collect", "raise", 3, 0.0, "*"),
        ("collect", "timeout", 3, 0.0, "*"),
        ("call", "reset", None, 0.25, "budget-*"),
    ]


def test_seed_and_patience_have_defaults(tmp_path: Path) -> None:
    rules = load_rules(write(tmp_path, ONE), "local")
    assert (rules.seed, rules.hang_s) == (0, HANG_S)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[fault]\n", "Expected"),
        ("", "holds no [[fault]]"),
        ("fault = 3\n", "holds no [[fault]]"),
        ("fault = [3]\n", "fault 1 is no table"),
        ("faults = []\n", "unknown key faults"),
        (f"seed = 0.5\n{ONE}", "seed = 0.5: write a whole number"),
        (f"seed = true\n{ONE}", "seed = True"),
        (f"hang_s = 0\n{ONE}", "hang_s = 0: write seconds above 0"),
        (ONE.replace("raise", "rise"), "fault 1: rise cannot strike in start; use hang, raise"),
        (ONE.replace("start", "begin"), "fault 1: unknown phase begin; use start, gateway"),
        (ONE.replace('"raise"', "1"), "fault 1: write kind"),
        (ONE.replace('"raise"', "[]"), "fault 1: write kind"),
        (ONE.replace("count = 1", "count = 0"), "count = 0: write a whole number above 0"),
        (ONE.replace("count = 1", "count = true"), "count = True"),
        (ONE.replace("count = 1", "rate = 1.5"), "rate = 1.5: write a share"),
        (ONE.replace("count = 1", ""), "write either count = N or rate"),
        (f"{ONE}rate = 0.1\n", "write either count = N or rate"),
        (f"{ONE}task = 3\n", "task = 3: write a pattern"),
        (f"{ONE}when = 3\n", "fault 1: unknown key when; use count, kind"),
        (f"{ONE}{ONE.replace('raise', 'crash')}", "fault 2: crash cannot strike in start"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path: Path, text: str, says: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(HarnessError) as refused:
        load_rules(path, "local")
    line = str(refused.value)
    assert line.startswith(f"--chaos {path}: ")
    assert says in line
    assert "\n" not in line


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=r"none\.toml: .*No such file"):
        load_rules(tmp_path / "none.toml", "local")


@pytest.mark.parametrize(("phase", "kind"), [("call", "reset"), ("call", "kill-trial")])
def test_what_reaches_into_our_boxes_is_refused_for_other_providers(
    tmp_path: Path, phase: str, kind: str
) -> None:
    path = write(tmp_path, ONE.replace("raise", kind).replace("start", phase))
    with pytest.raises(HarnessError, match=f"{kind} in {phase} needs --env local"):
        load_rules(path, "some.module:Provider")


@pytest.mark.parametrize(
    ("phase", "kind"),
    [("start", "rate-limited"), ("stop", "hang"), ("verify", "nan"), ("collect", "kill-trial")],
)
def test_what_any_provider_shows_is_wanted_of_any(tmp_path: Path, phase: str, kind: str) -> None:
    path = write(tmp_path, ONE.replace("raise", kind).replace("start", phase))
    assert len(load_rules(path, "some.module:Provider").wanted) == 1


def test_signals_to_boxes_of_another_user_need_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    path = write(tmp_path, ONE.replace("raise", "kill-box"))
    with pytest.raises(HarnessError, match="kill-box in start needs root"):
        load_rules(path, "local")


def test_the_table_names_a_retry_or_a_reward_for_every_fault() -> None:
    assert len(table()) > 100
    for (phase, kind), row in table().items():
        assert row.reward in ("kept", "valid", "invalid", "none"), f"{phase}.{kind}"
        assert bool(row.owner) == bool(row.code), f"{phase}.{kind}"
        assert not (row.retried and row.reward in ("kept", "valid")), f"{phase}.{kind}"
        assert (row.owner == "model") <= (row.reward == "valid"), f"{phase}.{kind}"
