# SPDX-License-Identifier: Apache-2.0
"""How a run goes on, or what failed in it runs again; and what is refused in one line."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from envkit.fault import HarnessError
from envkit.preflight.again import failed_trials, only, rerun, resumed, to_keep
from envkit.preflight.asked import Asked, as_asked, difference, read_asked, write_asked
from envkit.preflight.options import Options
from envkit.preflight.place import open_place, release, reopen_place
from envkit.preflight.types import Plan

from ..trial.tiny import make_task


def options(**changes: Any) -> Options:
    values: dict[str, Any] = {
        "source": Path("tasks"), "agent": "replay", "env": "local", "concurrency": 4,
        "repeat": 2, "limit": None, "max_fault_rate": "0.5", "seed": 0, "as_json": False,
        "report_dir": None,
    }  # fmt: skip
    return Options(**{**values, **changes})


def asked(plan: Plan, **changes: Any) -> Asked:
    return as_asked(plan, to_keep(options(**changes)))


@pytest.fixture
def plan(make: Any) -> Plan:
    """Over two real tasks."""
    for name in ("fact", "workbook"):
        make_task(make.tmp_path / "tasks", name)
    return make.plan()


def test_what_was_asked_is_read_back_as_it_was(plan: Plan, tmp_path: Path) -> None:
    told = as_asked(replace(plan, rerun_of=tmp_path / "other"), to_keep(options()))
    write_asked(tmp_path, told)
    assert read_asked(tmp_path) == told


@pytest.mark.parametrize(
    "text", ["", "[]", "null", '"x"', "{}", '{"schema": "envkit.run/1"}', '{"schema": 7}']
)
def test_what_no_run_wrote_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(HarnessError, match=r"run\.json: not what a run was asked for"):
        read_asked(tmp_path)


def test_a_run_of_another_schema_is_refused_by_its_name(plan: Plan, tmp_path: Path) -> None:
    write_asked(tmp_path, asked(plan))
    path = tmp_path / "run.json"
    path.write_text(path.read_text().replace("envkit.run/1", "envkit.run/2"))
    with pytest.raises(HarnessError, match=r"schema envkit\.run/2"):
        read_asked(tmp_path)


def test_a_directory_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="No such file"):
        read_asked(tmp_path)
    with pytest.raises(HarnessError, match="holds no run"):
        reopen_place(tmp_path)


def test_a_changed_file_of_a_task_or_of_its_world_is_named_by_the_task(plan: Plan) -> None:
    before = asked(plan)
    assert difference(before, asked(plan)) == ""
    fact, workbook = sorted(before.tasks)
    note = plan.source / "worlds/tiny/filesystem/note.txt"
    text = note.read_text()
    note.write_text("another word")
    assert difference(before, asked(plan)) == f"{fact} changed"
    note.write_text(text)
    Path(workbook, "instruction.md").write_text("Do something else.\n")
    assert difference(before, asked(plan)) == f"{workbook} changed"


def test_tasks_and_trials_that_came_or_went_are_named(make: Any, plan: Plan) -> None:
    both, one = asked(plan), asked(make.plan(("fact",), 3))
    assert difference(both, one).endswith("/workbook is gone")
    assert difference(one, both).endswith("/workbook is new")
    assert difference(one, asked(make.plan(("fact",), 2))) == "its trials are others"


def test_options_survive_in_another_directory(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = asked(plan, seed=7)
    now = options(source=Path("other"), as_json=True, resume=tmp_path)
    goes_on = resumed(now, {"resume", "as_json"}, before)
    assert goes_on == options(source=tmp_path / "tasks", seed=7, as_json=True, resume=tmp_path)


def test_an_option_that_differs_from_the_runs_is_refused_and_the_same_is_not(plan: Plan) -> None:
    resumed(options(), {"concurrency", "source"}, asked(plan))
    with pytest.raises(HarnessError, match=r"--max-fault-rate 5: the run has 0\.5"):
        resumed(options(max_fault_rate="5"), {"max_fault_rate"}, asked(plan))


def test_a_run_of_an_envkit_with_other_options_is_refused(plan: Plan) -> None:
    before = asked(plan)
    broken = replace(before, options={**before.options, "seed": "seven"})
    with pytest.raises(HarnessError, match="whose options this one does not know"):
        resumed(options(), set(), broken)


def test_what_failed_runs_again_with_what_was_given_beside_it(plan: Plan) -> None:
    again = rerun(options(env="unsafe-process", seed=9), {"env"}, asked(plan, seed=7))
    assert (again.env, again.seed) == ("unsafe-process", 7)
    with pytest.raises(HarnessError, match="--repeat: the trials are those that failed"):
        rerun(options(), {"repeat"}, asked(plan))


def test_what_was_struck_runs_again_unstruck_unless_chaos_is_asked_for(plan: Plan) -> None:
    struck = asked(plan, chaos=Path("rules.toml"))
    assert rerun(options(), set(), struck).chaos is None
    other = options(chaos=Path("other.toml"))
    assert rerun(other, {"chaos"}, struck).chaos == Path("other.toml")


def test_only_the_trials_that_failed_are_planned_and_none_is_lost(
    plan: Plan, tmp_path: Path
) -> None:
    trials = frozenset({"fact__001", "workbook__002"})
    some = only(plan, trials, tmp_path)
    assert {spec.trial_id for spec in some.specs} == trials
    assert some.rerun_of == tmp_path
    with pytest.raises(HarnessError, match="no trial gone__000 any more"):
        only(plan, frozenset({"gone__000"}), tmp_path)


def report(root: Path, token: str, *failed: str) -> None:
    told = {"run_token": token, "failed": [{"trial": trial} for trial in failed]}
    (root / "report.json").write_bytes(orjson.dumps(told))


def test_what_failed_is_read_from_the_report_of_that_very_run(plan: Plan, tmp_path: Path) -> None:
    run = asked(plan)
    with pytest.raises(HarnessError, match="--resume"):
        failed_trials(tmp_path, run)
    report(tmp_path, "another", "fact__000")
    with pytest.raises(HarnessError, match="--resume"):
        failed_trials(tmp_path, run)
    report(tmp_path, run.run_token, "fact__000")
    assert failed_trials(tmp_path, run) == {"fact__000"}
    report(tmp_path, run.run_token)
    with pytest.raises(HarnessError, match="nothing to run again"):
        failed_trials(tmp_path, run)
    (tmp_path / "report.json").write_text("[]")
    with pytest.raises(HarnessError, match="not a report"):
        failed_trials(tmp_path, run)


def test_two_processes_never_work_in_one_directory(tmp_path: Path) -> None:
    root = tmp_path / "r"
    place = open_place(root, "token")
    for again in (lambda: open_place(root, "other"), lambda: reopen_place(root)):
        with pytest.raises(HarnessError, match=f"process {os.getpid()} works on a run in it"):
            again()
    assert place.trials.is_dir()
    release(place)
    release(reopen_place(root))


HOLDER = """\
import sys, time
from pathlib import Path
from envkit.preflight.place import open_place
open_place(Path(sys.argv[1]), "token")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    root = tmp_path / "r"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, root], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(HarnessError, match=f"process {holder.pid} works"):
            reopen_place(root)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    release(reopen_place(root))
