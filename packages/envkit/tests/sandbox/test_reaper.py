# SPDX-License-Identifier: Apache-2.0
"""What a killed run leaves is found by its token and removed; what lives is left alone."""

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from envkit.sandbox import cgroup, reaper
from envkit.sandbox.limits import Limits
from envkit.sandbox.stage import OWNER, STAGES

pytestmark = pytest.mark.integration


def dead_pid() -> int:
    with subprocess.Popen(["true"]) as process:
        process.wait()
        return process.pid


@pytest.fixture
def run_token() -> Iterator[str]:
    token = secrets.token_hex(8)
    yield token
    stage = STAGES / f"envkit-run-{token}"
    if stage.exists():
        (stage / OWNER).unlink(missing_ok=True)
        stage.rmdir()


def make_stage(token: str, owner: int) -> Path:
    stage = STAGES / f"envkit-run-{token}"
    stage.mkdir()
    (stage / OWNER).write_text(str(owner))
    return stage


def start_process(token: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()"],
        env={"ENVKIT_RUN": token, "PATH": os.defpath},
        stdin=subprocess.PIPE,
    )


def test_a_process_group_and_stage_of_a_dead_run_are_found_and_removed(run_token: str):
    stage = make_stage(run_token, dead_pid())
    parent = cgroup.find_parent()
    if parent:
        cgroup.Group.create(parent, f"{run_token}-box", Limits())
    with start_process(run_token) as process:
        found = {remnant.kind for remnant in reaper.remnants(run_token)}
        assert found == {"process", "file"} | ({"cgroup"} if parent else set())
        assert run_token in reaper.dead_runs()
        reaper.reap()
        assert process.wait(10) == -9
    assert reaper.remnants(run_token) == []
    assert not stage.exists()


def test_a_run_whose_owner_lives_is_left_alone(run_token: str):
    stage = make_stage(run_token, os.getpid())
    with start_process(run_token) as process:
        assert run_token not in reaper.dead_runs()
        reaper.reap()
        assert process.poll() is None
        process.kill()
    assert stage.exists()


def test_a_stage_that_was_made_just_now_may_still_be_marked_by_its_owner(run_token: str):
    stage = make_stage(run_token, dead_pid())
    (stage / OWNER).unlink()
    assert run_token not in reaper.dead_runs()
    reaper.reap()
    assert stage.exists()


def test_a_process_that_was_given_the_owners_number_is_not_the_owner(run_token: str):
    stage = make_stage(run_token, os.getpid())
    (stage / OWNER).write_text(f"{os.getpid()} {reaper.birth(os.getpid())}")
    assert run_token not in reaper.dead_runs()
    (stage / OWNER).write_text(f"{os.getpid()} 1")
    assert run_token in reaper.dead_runs()


def test_processes_alone_are_enough_to_find_a_dead_run(run_token: str):
    with start_process(run_token) as process:
        assert run_token in reaper.dead_runs()
        assert reaper.reap_run(run_token) == []
        assert process.wait(10) == -9


def test_a_directory_with_a_similar_name_is_nobodys_run(tmp_path: Path):
    lookalike = STAGES / f"envkit-{secrets.token_hex(4)}"
    lookalike.mkdir()
    try:
        assert not any(str(lookalike) in remnant.what for remnant in reaper.find_leftovers())
    finally:
        lookalike.rmdir()


def test_a_token_that_only_begins_alike_is_another_run(run_token: str):
    with start_process(f"{run_token}0") as process:
        assert reaper.processes(run_token) == []
        process.kill()
