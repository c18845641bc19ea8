# SPDX-License-Identifier: Apache-2.0
"""Real trials, struck for real: each must come out as the committed table says.

One launcher runs them all. The rows here reach into every phase and use every hand there is; the
whole table is struck by ``benchmarks/chaos_64.py``.
"""

import os
from collections import Counter
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import orjson
import pytest

from envkit.preflight.chaos import clocks, log
from envkit.preflight.chaos.choose import choose, write_chosen
from envkit.preflight.chaos.expected import phases
from envkit.preflight.chaos.rules import Rules, Wanted
from envkit.preflight.chaos.score import Score, score
from envkit.sandbox.availability import availability
from envkit.sandbox.cgroup import find_parent
from envkit.trial.load import LoadShape

from ...trial.tiny import launcher, make_task, run_trials, spec

pytestmark = pytest.mark.integration

HANG_S = 6.0
"""Ten times what an operation takes when ten trials share two cores."""

UNTOUCHED = 4

TWICE = LoadShape(grade_twice=True)
"""A verifier that works a second time must not be struck a second time."""

STRUCK = {
    "start": (
        *("raise", "rate-limited", "garbage", "kill-box", "kill-trial"),
        *("clock-jump", "wall-clock-back", "wall-clock-ahead"),
    ),
    "gateway": ("refused", "garbage", "kill-gateway", "stop-gateway"),
    "connect": ("silent", "reset", "http-500", "kill-gateway"),
    "list": ("garbage", "kill-gateway-box"),
    "call": (
        *("reset", "rate-limited", "slow", "pause", "kill-gateway", "out-of-memory", "kill-box"),
        *("wall-clock-back", "wall-clock-ahead"),
    ),
    "answer": ("cut", "model-disk", "model-box"),
    "collect": (
        *("slow", "trickle", "crawl", "garbage", "empty", "disk-full"),
        *("kill-box", "kill-trial"),
    ),
    "stop": ("raise", "garbage", "kill-box"),
    "grade-start": ("timeout", "wall-clock-back", "wall-clock-ahead", "kill-trial"),
    "carry": ("raise", "trickle", "crawl", "kill-box"),
    "verify": (
        *("crash", "killed", "nan", "text", "out-of-memory", "disk-full", "pause", "kill-box"),
    ),
    "reward": ("garbage", "trickle", "crawl"),
    "grade-stop": ("hang",),
    "record": ("torn", "disk-full"),
}
MODELS_OWN = ("model-kills-all", "model-endless", "model-memory")
"""In ``call``: what must not be taken for chaos."""

GROUPED = {("call", "out-of-memory"), ("verify", "out-of-memory"), ("call", "model-memory")}
"""Done by control groups, which not every machine lets us make."""


def _rows() -> list[tuple[str, str]]:
    rows = [(phase, kind) for phase, kinds in STRUCK.items() for kind in kinds]
    rows += [("call", kind) for kind in MODELS_OWN]
    return [row for row in rows if row not in GROUPED or find_parent() is not None]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report directory of a run in which every row strikes once."""
    here = availability()
    if not here.ok:
        pytest.skip(f"missing tool: {here.line()}")
    if os.geteuid() != 0:
        pytest.skip("not run: needs root")
    place = tmp_path_factory.mktemp("chaos")
    report, trials = place / "report", place / "report" / "trials"
    task = make_task(place / "tasks")
    rows = _rows()
    names = [f"tiny__{n:03d}" for n in range(len(rows) + UNTOUCHED)]
    specs = [replace(spec(task, trials, name), load=TWICE) for name in names]
    wanted = tuple(Wanted(kind=k, phase=p, count=1, rate=0, task="*") for p, k in rows)
    rules = Rules(seed=3, hang_s=HANG_S, wanted=wanted)
    plan = report / "chaos" / "plan.json"
    write_chosen(plan, choose(rules, [(s.trial_id, s.task_dir.name) for s in specs], "token"))
    ran = run_trials(launcher(trials, concurrency=8, chaos=plan), specs)
    leaks = dict(Counter(left.kind for left in ran.leftovers))
    (report / "report.json").write_bytes(orjson.dumps({"leaks": leaks, "run_token": "token"}))
    return report


@pytest.fixture(scope="module")
def scored(home: Path) -> Score:
    return score(home)


def test_every_phase_is_struck() -> None:
    assert list(STRUCK) == phases()


def test_every_strike_took_effect(scored: Score) -> None:
    missed = {(r.strike.phase, r.strike.kind): r.effect for r in scored.rows if not r.took}
    assert missed == {}


def test_every_strike_is_seen_for_what_it_is(scored: Score) -> None:
    wrong = {
        f"{row.strike.phase}.{row.strike.kind}": f"{row.owner} {row.code} retried={row.retried}"
        f" reward={row.reward} valid={row.reward_valid}"
        for row in scored.rows
        if not row.right
    }
    assert wrong == {}


def test_trials_that_nothing_struck_are_as_ever(scored: Score) -> None:
    assert (scored.untouched, scored.disturbed) == (UNTOUCHED, ())


def test_no_strike_leaves_anything_behind(scored: Score) -> None:
    assert scored.leaks == 0


def test_what_a_strike_reaches_is_proven_beside_it(home: Path) -> None:
    effects = {(d.phase, d.kind): d.effect for d in log.read(home / "chaos" / log.LOG_NAME)}
    assert effects["start", "kill-trial"].endswith("is gone")
    assert effects["gateway", "stop-gateway"].endswith("stands still")
    assert effects["verify", "disk-full"].endswith("has 0 blocks left")
    assert effects["verify", "pause"].endswith("stood still for 1 s")


def test_a_wrong_wall_clock_dates_what_harbor_records(home: Path) -> None:
    struck = {(d.phase, d.kind): d for d in log.read(home / "chaos" / log.LOG_NAME)}
    for kind, seconds in clocks.WRONG_S.items():
        done = struck["call", kind]
        result = orjson.loads((home / "trials" / done.trial / "result.json").read_bytes())
        ended = datetime.fromisoformat(result["finished_at"]).timestamp()
        assert abs(ended - done.at - seconds) < 3600
