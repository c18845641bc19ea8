# SPDX-License-Identifier: Apache-2.0
"""The command as a user meets it: what it prints, its document, its exit code."""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from envkit.doctor.examine import guarded
from envkit.doctor.report import exit_code, lines, to_json
from envkit.doctor.types import Finding, Status
from envkit.sandbox.stage import OWNER, STAGES


def finding(status: Status, **more: str) -> Finding:
    return Finding(**{"name": "disk", "status": status, "text": "1 MiB free", **more})  # type: ignore[arg-type]


def printed(found: Finding) -> list[str]:
    return [line.plain for line in lines(found)]


def test_only_what_fails_makes_it_fail() -> None:
    assert exit_code([finding(Status.OK), finding(Status.INFO), finding(Status.WARN)]) == 0
    assert exit_code([finding(Status.OK), finding(Status.FAIL)]) == 1


def test_a_finding_is_a_line_and_its_fix_another() -> None:
    assert printed(finding(Status.OK)) == ["ok    disk               1 MiB free"]
    first, second = printed(finding(Status.FAIL, fix="free some", needed_for="trials"))
    assert first == "fail  disk               1 MiB free"
    assert second.strip() == "do: free some  (for trials)"


def test_text_of_this_machine_cannot_forge_a_line() -> None:
    hostile = finding(Status.FAIL, text="a\nok  boxes\x1b[2J", fix="b\nc")
    assert all(line.isprintable() for line in printed(hostile))
    assert len(printed(hostile)) == 2


def test_the_document_has_every_finding_with_its_fix() -> None:
    found = [finding(Status.FAIL, fix="free some")]
    told = json.loads(json.dumps(to_json(found, 550)))
    assert (told["schema"], told["for"], told["ok"]) == ("envkit.doctor/1", 550, False)
    assert told["findings"] == [
        {
            "name": "disk",
            "status": "fail",
            "text": "1 MiB free",
            "fix": "free some",
            "needed_for": "",
        }
    ]


def test_a_probe_that_breaks_costs_no_other() -> None:
    def broken() -> Iterator[Finding]:
        yield finding(Status.OK)
        raise RuntimeError("a file that nobody thought of")

    first, second = guarded("disk", broken)
    assert first.status is Status.OK
    assert second.status is Status.FAIL
    assert "a file that nobody thought of" in second.text


def doctor(*words: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from envkit.cli import main; main()", "doctor", *words],
        capture_output=True,
        env={**os.environ, "PATH": path or os.environ["PATH"], "OPENAI_API_KEY": "sk-secret"},
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.integration
def test_the_command_examines_this_machine_as_text_and_as_a_document() -> None:
    text, told = doctor(), json.loads(doctor("--json", "--for", "3").stdout)
    assert text.stderr == ""
    names = {each["name"] for each in told["findings"]}
    assert names >= {"envkit", "room", "memory", "cgroups", "bubblewrap", "boxes", "clock", "keys"}
    assert "gateways" in names
    assert all(f"  {name} " in text.stdout for name in names)
    assert told["for"] == 3
    assert all(each["fix"] for each in told["findings"] if each["status"] == "fail")
    assert "sk-secret" not in text.stdout + json.dumps(told)
    assert "OPENAI_API_KEY" in text.stdout


@pytest.mark.integration
def test_more_trials_than_fit_fail_with_what_binds() -> None:
    done = doctor("--for", "10000000", "--json")
    assert done.returncode == 1
    (room,) = (each for each in json.loads(done.stdout)["findings"] if each["name"] == "room")
    assert room["status"] == "fail"
    assert "binds" in room["text"]


@pytest.mark.integration
def test_a_docker_that_hangs_does_not_hang_the_doctor(tmp_path: Path) -> None:
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\nsleep 600 &\nwait\n")
    docker.chmod(0o755)
    done = doctor("--json", path=f"{tmp_path}:{os.environ['PATH']}")
    found = [each for each in json.loads(done.stdout)["findings"] if each["name"] == "Docker"]
    assert [each["status"] for each in found] == ["warn"]
    assert "no answer within" in found[0]["text"]


@pytest.mark.integration
def test_what_a_killed_run_left_fails_until_it_is_reaped() -> None:
    token = secrets.token_hex(8)
    stage = STAGES / f"envkit-run-{token}"
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    stage.mkdir()
    (stage / OWNER).write_text(str(gone.pid))
    try:
        before = json.loads(doctor("--json").stdout)["findings"]
        assert any(str(stage) in each["text"] and each["status"] == "fail" for each in before)
        assert str(stage) in doctor("--reap").stdout
        assert not stage.exists()
    finally:
        if stage.exists():
            (stage / OWNER).unlink(missing_ok=True)
            stage.rmdir()
