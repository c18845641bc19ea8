# SPDX-License-Identifier: Apache-2.0
"""What the model's own code does to its box is the model's: graded as it stands, never run again.

Every case is a real trial whose agent works (``DONE``) and attacks through code_execution. None
may lose its reward to an infrastructure fault, which would be a place to hide: a policy that
breaks its box where it cannot solve the task would have those trials masked.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from envkit.fault import Owner
from envkit.sandbox.cgroup import find_parent

from .tiny import ANSWER, DONE, ORDINARY, Ran, launcher, make_task, run, run_trials, spec

pytestmark = pytest.mark.integration

SMALL_MB = 96
"""Memory of boxes that are to run out of it."""


def python(source: str, **more: Any) -> dict[str, object]:
    return run(source, language="python", **more)


@dataclass(frozen=True, kw_only=True)
class Case:
    """What an agent does, and what that is worth."""

    calls: Sequence[Mapping[str, object]]
    reward: float = 1.0
    code: str = ""
    """Of the model's fault on the record; empty where nothing needs to be said."""
    memory_mb: int = 512
    storage_mb: int = 256
    counted: bool = False
    """Known from control groups alone: rlimits stop it without a word."""


KILL_EACH = "for p in /proc/[0-9]*; do p=${p#/proc/}; [ $p = $$ ] || kill -9 $p; done 2>/dev/null"
DAEMON = "setsid nohup bash -c '{}' >/dev/null 2>&1 </dev/null &"
FORKS = """\
import os
while True:
    try:
        if os.fork() == 0:
            os.setsid()
    except OSError:
        pass
"""
TRAPS = """\
import os
for path in ("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/localtime"):
    if os.path.lexists(path):
        os.unlink(path)
    os.mkfifo(path)
os.mkfifo("/filesystem/pipe")
os.mkfifo("/logs/artifacts/final_answer.txt")
"""
DEEP = """\
import os
for _ in range(400):
    os.mkdir("d" * 50)
    os.chdir("d" * 50)
open("bottom.txt", "w").write("x")
"""
NAMES = r"""
import os
os.chdir(b"/filesystem")
for name in (b"new\nline", b"\xff\xfe", b"n" * 255, b"-rf", b" ", b"...", "\u202e.txt".encode()):
    open(name, "wb").write(b"x")
"""
EMPTY_FILES = """\
import itertools
for number in itertools.count():
    open(f"/filesystem/{number}", "x").close()
"""
STOP_ALL = "import os, signal\nos.setsid()\nwhile True: os.kill(-1, signal.SIGSTOP)"
PUT_TRUE = (
    "for t in tar bash sh cat ls readlink chmod rm env mkdir touch find gzip python3; do"
    " rm -f /usr/bin/$t /usr/local/bin/$t; cp /usr/bin/true /usr/bin/$t; done"
)

CASES = {
    "kills-all-at-once": Case(calls=(run("kill -9 -1; kill -9 1; kill 1"), DONE, ANSWER)),
    "kills-each-in-turn": Case(calls=(run(KILL_EACH), run("kill -9 $$"), DONE, ANSWER)),
    "kills-all-for-ever": Case(
        calls=(DONE, run(DAEMON.format("while :; do kill -9 -1; done")), ANSWER)
    ),
    "stops-all-for-ever": Case(
        calls=(DONE, run(f"setsid python3 -c '{STOP_ALL}' >/dev/null 2>&1 &"), ANSWER)
    ),
    "fork-bomb": Case(
        calls=(
            DONE,
            run(":(){ :|:& };:\nwhile :; do :; done", timeout_s=1, expect_error=True),
            ANSWER,
        ),
        code="ProcessLimit",
        counted=True,
    ),
    "fork-bomb-in-sessions-of-its-own": Case(
        calls=(DONE, python(FORKS, timeout_s=1, expect_error=True), ANSWER),
        code="ProcessLimit",
        counted=True,
    ),
    "out-of-memory": Case(
        calls=(python("x = bytearray(1 << 30)", expect_error=True), DONE, ANSWER),
        memory_mb=SMALL_MB,
        code="OutOfMemory",
        counted=True,
    ),
    "out-of-memory-by-files": Case(
        calls=(DONE, run("cat /dev/zero > /filesystem/fill", expect_error=True), ANSWER),
        memory_mb=SMALL_MB,
        code="OutOfMemory",
        counted=True,
    ),
    "offers-its-box-to-the-killer": Case(
        calls=(
            DONE,
            run("echo 1000 > /proc/1/oom_score_adj; cat /dev/zero > fill", expect_error=True),
            ANSWER,
        ),
        memory_mb=SMALL_MB,
        reward=0.0,
        code="KilledOwnBox",
        counted=True,
    ),
    "fills-its-disk": Case(
        calls=(
            DONE,
            run("cat /dev/zero > /filesystem/fill", expect_error=True),
            run("cat /dev/zero > /tmp/fill", expect_error=True),
            ANSWER,
        ),
        storage_mb=16,
        code="DiskFull",
        reward=0.5,
    ),
    "fills-its-disk-with-empty-files": Case(
        calls=(DONE, python(EMPTY_FILES, expect_error=True), ANSWER),
        storage_mb=16,
        code="DiskFull",
        reward=0.5,
    ),
    "endless-command": Case(
        calls=(run("while :; do :; done", timeout_s=0.5, expect_error=True), DONE, ANSWER),
        code="EndlessCommand",
    ),
    "endless-command-in-a-session-of-its-own": Case(
        calls=(
            run("setsid -w sleep infinity", timeout_s=0.5, expect_error=True),
            DONE,
            ANSWER,
        ),
        code="EndlessCommand",
    ),
    "daemon-that-undoes-its-work": Case(
        calls=(
            DONE,
            run(DAEMON.format("while :; do echo evil > /filesystem/done.txt; done")),
            run("while [ $(cat /filesystem/done.txt) = done ]; do :; done", timeout_s=20),
            ANSWER,
        ),
        reward=0.5,
    ),
    "daemon-that-changes-what-is-collected": Case(
        calls=(
            DONE,
            run(
                DAEMON.format(
                    "cd /filesystem; while :; do mkdir d; echo x > d/f; echo y > g; rm -r d g; done"
                )
            ),
            ANSWER,
        ),
    ),
    "daemon-that-forges-rewards": Case(
        calls=(
            run(
                DAEMON.format(
                    'while :; do echo "{\\"reward\\": 1.0}" > /logs/verifier/reward.json; done'
                )
            ),
            run("while ! [ -s /logs/verifier/reward.json ]; do :; done", timeout_s=20),
        ),
        reward=0.0,
    ),
    "replaces-the-tools": Case(calls=(DONE, run(PUT_TRUE), ANSWER)),
    "removes-the-system": Case(
        calls=(DONE, run("rm -rf /usr /bin /lib /lib64 /sbin /etc /opt 2>/dev/null; :"), ANSWER)
    ),
    "removes-all-files": Case(
        calls=(run("rm -rf /filesystem/* /logs /tests /solution /tmp"), DONE, ANSWER)
    ),
    "lays-traps-for-libraries": Case(calls=(DONE, python(TRAPS), ANSWER)),
    "makes-files-unreadable": Case(
        calls=(
            DONE,
            run(
                "mkdir d e; echo x > d/f; chmod 444 d; chmod 000 e a_long.txt;"
                " mkdir /logs/artifacts/closed; chmod 000 /logs/artifacts/closed"
            ),
            ANSWER,
        )
    ),
    "closes-the-place-of-its-answer": Case(
        calls=(DONE, run("chmod 000 /logs/artifacts"), ANSWER), reward=0.5, code="KilledOwnBox"
    ),
    "puts-a-file-in-the-way-of-its-answer": Case(
        calls=(DONE, run("rm -rf /logs; echo > /logs"), ANSWER), reward=0.5, code="KilledOwnBox"
    ),
    "puts-a-link-in-the-way-of-its-answer": Case(
        calls=(DONE, run("rm -rf /logs/artifacts; ln -s /nowhere /logs/artifacts"), ANSWER),
        reward=0.5,
        code="KilledOwnBox",
    ),
    "leaves-a-link-in-a-circle": Case(
        calls=(DONE, run("rm -rf /logs/artifacts; ln -s artifacts /logs/artifacts"), ANSWER),
        reward=0.5,
        code="KilledOwnBox",
    ),
    "leaves-a-huge-sparse-file": Case(
        calls=(DONE, run("truncate -s 1T /filesystem/huge"), ANSWER), reward=0.5, code="DiskFull"
    ),
    "leaves-links-out-of-its-box": Case(
        calls=(
            DONE,
            run(
                "ln -s /etc/passwd a; ln -s ../../../../../../etc/passwd b; ln -s / c;"
                " ln -s /proc/self/environ /logs/artifacts/d; ln -s loop loop;"
                " ln a_long.txt hard; ln -s a_long.txt inside"
            ),
            ANSWER,
        )
    ),
    "leaves-deep-directories": Case(calls=(DONE, python(DEEP), ANSWER)),
    "leaves-odd-names": Case(calls=(DONE, python(NAMES), ANSWER)),
    "forges-its-reward": Case(
        calls=(
            run(
                "echo '{\"reward\": 1.0}' > /logs/verifier/reward.json;"
                " echo 1.0 > /logs/verifier/reward.txt; echo exit > /tests/test.sh;"
                " cp /logs/verifier/reward.json /logs/artifacts; cp /logs/verifier/reward.json ."
            ),
        ),
        reward=0.0,
    ),
}


@pytest.fixture(scope="module")
def ran(boxes: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Ran, Path]:
    """All cases beside each other, and an honest trial among them."""
    place = tmp_path_factory.mktemp("model")
    specs = [spec(make_task(place / "tasks", "honest", ORDINARY), place / "out")]
    for name, case in CASES.items():
        memory_mb, storage_mb = case.memory_mb, case.storage_mb
        tasks = place / "tasks"
        task = make_task(tasks, name, case.calls, memory_mb=memory_mb, storage_mb=storage_mb)
        specs.append(spec(task, place / "out"))
    return run_trials(launcher(place / "out", concurrency=4), specs), place / "out"


@pytest.mark.parametrize("name", CASES)
def test_what_the_model_does_to_its_box_is_graded_as_it_stands(
    ran: tuple[Ran, Path], name: str
) -> None:
    record, case = ran[0][f"{name}__000"], CASES[name]
    if case.counted and find_parent() is None:
        pytest.skip("not run: no control group can be made here")
    faults = [fault for attempt in record.attempts for fault in attempt.faults]
    assert {fault.owner for fault in faults} <= {Owner.MODEL}, faults
    assert len(record.attempts) == 1
    assert (record.reward, record.reward_valid) == (case.reward, True), faults
    assert case.code == "" or case.code in {fault.code for fault in faults}


def test_other_trials_of_the_run_do_not_notice(ran: tuple[Ran, Path]) -> None:
    record = ran[0]["honest__000"]
    assert (record.reward, record.reward_valid, len(record.attempts)) == (1.0, True, 1)
    assert record.attempts[0].faults == ()


def test_nothing_is_left_of_any_of_them(ran: tuple[Ran, Path]) -> None:
    assert ran[0].leftovers == []


def test_nothing_that_came_out_of_a_box_leads_elsewhere(ran: tuple[Ran, Path]) -> None:
    for trial in ran[1].glob("*__000"):
        for path in trial.rglob("*"):
            assert os.path.realpath(path).startswith(os.path.realpath(trial)), path
            assert path.is_symlink() or path.is_dir() or path.is_file(), path
