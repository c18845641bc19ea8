# SPDX-License-Identifier: Apache-2.0
"""How trials end when what lies around them is broken, and what they leave in temporary places."""

import os
from pathlib import Path

import pytest

from envkit.fault import Owner, Phase
from envkit.preflight.temporary import TEMPORARY
from envkit.preflight.types import Notice
from envkit.sandbox.availability import availability

from ..trial.tiny import Ran, launcher, make_task, run_trials, spec

pytestmark = pytest.mark.integration

AGENTS = '''\
"""Agents that leave something behind."""

import os
import tempfile

from envkit.agent.replay import ReplayAgent


class LitteringAgent(ReplayAgent):
    async def run(self, *args, **more):
        await super().run(*args, **more)
        tempfile.mkstemp(prefix="litter-")
        tempfile.mkdtemp(prefix="litter-")


class DyingAgent(ReplayAgent):
    async def run(self, *args, **more):
        os._exit(7)
'''


@pytest.fixture(scope="module", autouse=True)
def boxes() -> None:
    here = availability()
    if not here.ok:
        pytest.skip(f"missing tool: {here.line()}")


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials can import them, and the user has a temporary directory of his own."""
    folder = tmp_path / "agents"
    folder.mkdir()
    (folder / "littering.py").write_text(AGENTS)
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    (tmp_path / "users").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "users"))


def notices(ran: Ran) -> list[str]:
    return [event.line for event in ran.events if isinstance(event, Notice)]


def a_file_in_its_place(trial_dir: Path) -> None:
    trial_dir.parent.mkdir(parents=True, exist_ok=True)
    trial_dir.write_text("")
    trial_dir.with_name(f"{trial_dir.name}.attempt2").write_text("")


def a_full_disk(trial_dir: Path) -> None:
    trial_dir.mkdir(parents=True)
    (trial_dir / ".envkit.json.part").symlink_to("/dev/full")


@pytest.mark.parametrize("breaks", [a_file_in_its_place, a_full_disk])
def test_a_record_that_cannot_be_written_costs_neither_the_trial_nor_the_run(
    tmp_path: Path, breaks
) -> None:
    task, out = make_task(tmp_path / "tasks"), tmp_path / "out"
    breaks(out / "broken")
    ran = run_trials(launcher(out), [spec(task, out, "broken"), spec(task, out, "good")])
    assert set(ran.records) == {"broken", "good"}
    assert ran["good"].reward == 1.0
    (line,) = [line for line in notices(ran) if line.startswith("broken: its record is")]
    assert "in the report only" in line
    assert ran["broken"].fault is not None or ran["broken"].reward == 1.0


def test_a_world_that_cannot_be_made_is_the_fault_of_each_trial_and_starts_no_process(
    tmp_path: Path,
) -> None:
    task, out = make_task(tmp_path / "tasks"), tmp_path / "out"
    world = tmp_path / "tasks/worlds/tiny"
    (world / "make.py").write_text("raise SystemExit('no documents today')\n")
    toml = (world / "world.toml").read_text()
    (world / "world.toml").write_text(f'{toml}\n[generator]\nscript = "make.py"\n')
    ran = run_trials(launcher(out), [spec(task, out, "a"), spec(task, out, "b")])
    for record in ran.records.values():
        (attempt,) = record.attempts
        (fault,) = attempt.faults
        assert (fault.owner, fault.phase) == (Owner.TASK, Phase.START)
        assert "no documents today" in fault.message
        assert [path.name for path in record.trial_dir.iterdir()] == ["envkit.json"]


def test_a_preparation_that_fails_as_nobody_knows_is_tried_once_more_and_never_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, out = make_task(tmp_path / "tasks"), tmp_path / "out"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ENVKIT_CACHE", str(tmp_path / "file/cache"))
    ran = run_trials(launcher(out), [spec(task, out, "a")])
    attempts = ran["a"].attempts
    assert len(attempts) == 2
    assert all("Not a directory" in attempt.faults[0].message for attempt in attempts)
    assert not ran["a"].reward_valid


@pytest.mark.usefixtures("agents")
def test_temporary_files_that_stay_are_leaks_and_are_removed(tmp_path: Path) -> None:
    task, out = make_task(tmp_path / "tasks"), tmp_path / "out"
    ran = run_trials(launcher(out), [spec(task, out, "a", "littering:LitteringAgent")])
    assert ran["a"].reward == 1.0
    assert [leak.kind for leak in ran.leftovers] == ["file", "file"]
    assert all(f"{out}/{TEMPORARY}/litter-" in leak.what for leak in ran.leftovers)
    assert not (out / TEMPORARY).exists()
    assert list((tmp_path / "users").iterdir()) == []


@pytest.mark.usefixtures("agents")
def test_what_a_dead_trial_left_in_the_temporary_directory_is_a_leak(tmp_path: Path) -> None:
    task, out = make_task(tmp_path / "tasks"), tmp_path / "out"
    unsafe = launcher(out, env="unsafe-process", concurrency=1)
    ran = run_trials(unsafe, [spec(task, out, "a", "littering:DyingAgent")])
    assert {leak.kind for leak in ran.leftovers} >= {"file"}
    assert any("/envkit-unsafe-" in leak.what for leak in ran.leftovers)
    assert not (out / TEMPORARY).exists()


@pytest.mark.usefixtures("agents")
@pytest.mark.parametrize("env", ["local", "unsafe-process"])
def test_a_clean_run_leaves_no_temporary_file(tmp_path: Path, env: str) -> None:
    task, out = make_task(tmp_path / "tasks"), tmp_path / "out"
    ran = run_trials(launcher(out, env=env, concurrency=1), [spec(task, out, "a", "nop")])
    assert ran.leftovers == []
    assert not (out / TEMPORARY).exists()
    assert list((tmp_path / "users").iterdir()) == []
