# SPDX-License-Identifier: Apache-2.0
"""A program's answer comes within its deadline, whatever the program and its children do."""

import os
import sys
import time
from pathlib import Path

from envkit.doctor.ask import ask


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_an_answer_has_a_status_and_both_outputs() -> None:
    answer = ask(python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"))
    assert answer.status == 3
    assert not answer.ok
    assert sorted(answer.text.split()) == ["err", "out"]


def test_the_first_and_the_last_line_that_say_something() -> None:
    answer = ask(python("print('\\n  one  \\n\\ntwo\\n\\n')"))
    assert (answer.line, answer.last) == ("one", "two")
    assert ask(python("")).line == ask(python("")).last == "no word"


def test_a_program_that_is_not_there_is_an_answer(tmp_path: Path) -> None:
    answer = ask([str(tmp_path / "docker")])
    assert answer.status is None
    assert "cannot be started: No such file" in answer.text


HANGS = """\
import os, sys, time
if os.fork() == 0:
    while True:
        time.sleep(60)
open(sys.argv[1], "w").write(str(os.getpid()))
while True:
    time.sleep(60)
"""


def test_a_program_that_hangs_with_its_children_is_given_up_and_all_of_it_killed(
    tmp_path: Path,
) -> None:
    pid_file = tmp_path / "pid"
    answer = ask([*python(HANGS), str(pid_file)], within_s=2.0)
    assert (answer.status, answer.text) == (None, "no answer within 2 s")
    session = int(pid_file.read_text())
    until = time.monotonic() + 10
    while _session_lives(session) and time.monotonic() < until:
        os.sched_yield()
    assert not _session_lives(session)


def _session_lives(session: int) -> bool:
    """Whether a process of the session runs; a zombie that nobody has reaped does not."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            return True
    return False
