# SPDX-License-Identifier: Apache-2.0
"""The injector's log: whole lines, however many write."""

import subprocess
import sys
from pathlib import Path

import pytest

from envkit.preflight.chaos import log
from envkit.preflight.chaos.choose import Strike

WRITER = """
import sys
from pathlib import Path
from envkit.preflight.chaos import log
from envkit.preflight.chaos.choose import Strike
for n in range(200):
    strike = Strike(trial=f"{sys.argv[2]}__{n}", kind="reset", phase="call")
    log.write(Path(sys.argv[1]), strike, "x" * 500)
"""


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path, strike = tmp_path / log.LOG_NAME, Strike(trial="t__000", kind="reset", phase="call")
    log.write(path, strike, "it is gone")
    log.write(path, strike, "it is still there", took=False)
    first, second = log.read(path)
    assert (first.trial, first.kind, first.phase, first.attempt) == ("t__000", "reset", "call", 1)
    assert [(d.took, d.effect) for d in (first, second)] == [
        (True, "it is gone"),
        (False, "it is still there"),
    ]


def test_without_a_strike_there_is_nothing_to_read(tmp_path: Path) -> None:
    assert log.read(tmp_path / log.LOG_NAME) == []


def test_many_processes_write_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / log.LOG_NAME
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(name)]) for name in range(4)
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0, 0]
    assert len({done.trial for done in log.read(path)}) == 800


@pytest.mark.parametrize("line", ["{", "[]", '{"trial": "t"}'])
def test_a_line_of_something_else_is_no_log(tmp_path: Path, line: str) -> None:
    path = tmp_path / log.LOG_NAME
    path.write_text(f"{line}\n")
    with pytest.raises((ValueError, TypeError)):
        log.read(path)
