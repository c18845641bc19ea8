# SPDX-License-Identifier: Apache-2.0
"""Trials that share something find each other out; agents and environments of a user's own."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from envkit.preflight.types import TrialSpec
from envkit.sandbox.canary import Canary
from envkit.trial.load import LoadShape

from .tiny import ANSWER, DONE, Ran, launcher, lend_parts, make_task, run, run_trials, spec

pytestmark = pytest.mark.integration

MARKED = LoadShape(canary="a secret of the run")
SEES_NO_MARK = run(
    "ls -A /filesystem /tmp /var/tmp /dev/shm | grep envkit-canary && exit 1\n"
    "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep '^ENVKIT_CANARY=' && exit 1\n"
    "true"
)


@pytest.fixture
def parts(boxes: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the environments of a test share."""
    lend_parts(monkeypatch)
    place = tmp_path / "shared"
    place.mkdir()
    monkeypatch.setenv("ENVKIT_TEST_SHARED", str(place))
    return place


def marked(task: Path, out: Path, trial_id: str = "", agent: str = "replay") -> TrialSpec:
    return replace(spec(task, out, trial_id, agent), load=MARKED)


def make_portable(tasks: Path) -> Path:
    """A task whose verifier takes its roots from where it runs, since nothing rewrites a script."""
    task = make_task(tasks)
    script = task / "tests/test.sh"
    text = script.read_text().replace("/filesystem/", "$FILESYSTEM_ROOT/")
    script.write_text(text.replace("/logs/", "$LOGS_ROOT/"))
    return task


def codes(ran: Ran) -> dict[str, str]:
    return {name: r.fault.code if r.fault else "" for name, r in ran.records.items()}


def test_trials_in_boxes_see_no_mark_and_each_box_is_searched(parts: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    task = make_task(tmp_path / "tasks", calls=[SEES_NO_MARK, DONE, ANSWER])
    specs = [marked(task, out, f"one__{n}") for n in range(3)]
    ran = run_trials(launcher(out, barrier=True, concurrency=3), specs)
    assert codes(ran) == {"one__0": "", "one__1": "", "one__2": ""}
    for record in ran.records.values():
        assert record.reward == 1.0
        assert record.reward_valid
        assert (record.attempts[0].searched, record.attempts[0].unsearched) == (3, 0)
        assert not list(record.trial_dir.rglob(".envkit-canary-*"))
    assert list(ran.leftovers) == []


@pytest.mark.parametrize("barrier", [True, False])
def test_two_trials_in_one_directory_find_each_other_out(
    parts: Path, tmp_path: Path, barrier: bool
) -> None:
    out = tmp_path / "out"
    task = make_portable(tmp_path / "tasks")
    specs = [marked(task, out, f"one__{n}", "own_parts:Does") for n in range(2)]
    launches = launcher(out, env="own_parts:OneDirectory", barrier=barrier, concurrency=2)
    ran = run_trials(launches, specs)
    found = [r for r in ran.records.values() if r.fault and r.fault.code == "NotIsolated"]
    assert found, codes(ran)
    for record in found:
        assert record.fault is not None
        assert record.fault.owner.value == "sandbox"
        assert not record.reward_valid
        assert len(record.attempts) == 1


def test_a_box_that_another_trial_has_used_is_found_out(parts: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    task = make_task(tmp_path / "tasks")
    specs = [marked(task, out, f"one__{n}") for n in range(2)]
    ran = run_trials(launcher(out, env="own_parts:UsedAgain", concurrency=1), specs)
    assert sorted(codes(ran).values()) == ["", "NotIsolated"]


def test_a_box_that_cannot_be_searched_is_counted_and_blamed_for_nothing(
    parts: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    ran = run_trials(
        launcher(out, env="own_parts:GoneBox"), [marked(make_task(tmp_path / "tasks"), out)]
    )
    record = ran["ordinary__000"]
    assert record.reward_valid
    assert (record.attempts[0].searched, record.attempts[0].unsearched) == (2, 1)


def test_a_second_grading_that_faults_leaves_the_first_valid(parts: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    one = replace(
        marked(make_task(tmp_path / "tasks"), out), load=replace(MARKED, grade_twice=True)
    )
    record = run_trials(launcher(out, env="own_parts:SecondVerifierDies"), [one])["ordinary__000"]
    first, second = record.attempts[0].grades
    assert record.reward_valid
    assert record.fault is None
    assert (first.reward, second.reward) == (1.0, None)
    assert second.fault is not None
    assert second.fault.code == "SandboxStartFailed"


def test_an_own_agent_in_an_own_environment_takes_its_arguments(
    parts: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    one = replace(
        marked(make_portable(tmp_path / "tasks"), out, agent="own_parts:Writes"),
        load=replace(MARKED, hold_s=0.2, grade_twice=True),
        agent_args={"word": "done", "tries": 3},
        env_args={"label": "mine"},
    )
    record = run_trials(launcher(out, env="own_parts:Plain"), [one])["ordinary__000"]
    assert record.fault is None, record.fault
    assert record.reward == 1.0
    assert [grade.reward for grade in record.attempts[0].grades] == [1.0, 1.0]
    assert record.attempts[0].tool_calls == 0
    assert record.attempts[0].searched == 3


def test_an_own_agent_that_raises_is_a_fault_and_no_zero(parts: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    one = marked(make_task(tmp_path / "tasks"), out, agent="own_parts:Raises")
    record = run_trials(launcher(out), [one])["ordinary__000"]
    assert record.fault is not None
    assert record.fault.code == "KeyError"
    assert not record.reward_valid


def printed(*marks: str) -> str:
    lines = [f"/tmp/.envkit-canary-{mark}" for mark in marks]
    return "\n".join([*lines, "envkit searched"])


@pytest.mark.parametrize(
    ("output", "faults", "searched"),
    [
        (printed("0" * 16), 0, 1),
        (printed("0" * 16, "1" * 16, "1" * 16), 1, 1),
        (printed("0" * 16, "1" * 16, "2" * 16), 2, 1),
        (printed("1" * 16), 1, 0),
        (printed(), 0, 0),
        ("/tmp/.envkit-canary-0000000000000000\n", 0, 0),
        ("/proc/7/environ:.envkit-canary-0000000000000000\nenvkit searched", 0, 0),
        ("", 0, 0),
    ],
)
def test_a_search_counts_only_where_it_came_to_its_end_and_saw_its_own_mark(
    output: str, faults: int, searched: int
) -> None:
    canary = Canary("0" * 16)
    assert len(canary.read(output)) == faults
    assert (canary.searched, canary.failed) == (searched, 1 - searched)


def test_marks_that_could_not_be_set_out_are_missed() -> None:
    canary = Canary("0" * 16)
    canary.arrived("pid 12\n")
    assert (canary.out, canary.failed) == (True, 0)
    assert "kill -9 12" in canary.hide()
    assert not canary.out
    canary.arrived("")
    assert (canary.out, canary.failed) == (False, 1)


def test_marks_differ_by_trial_attempt_and_run() -> None:
    other: Any = LoadShape(canary="of another run")
    marks = {shape.mark_of(name) for shape in (MARKED, other) for name in ("a", "a.attempt2", "b")}
    assert len(marks) == 6
    assert LoadShape().mark_of("a") == ""
