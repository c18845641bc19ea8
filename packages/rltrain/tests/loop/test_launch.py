# SPDX-License-Identifier: Apache-2.0
"""Several ranks are one command: one line, one exit status, one end."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from rltrain.loop.launch import launched
from rltrain.refused import Refused

sys.path.insert(0, str(Path(__file__).parent))
import ranked

pytestmark = pytest.mark.trainer


def test_ranks_meet_and_their_exit_status_is_that_of_all(tmp_path: Path) -> None:
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    assert launched(2, ranked.meet, tmp_path) == 130
    assert (tmp_path / "heard").read_text("utf-8") == "rank 0, rank 1"
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_what_one_rank_is_refused_is_the_line_of_all(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"^policy\.path: nothing there$"):
        launched(2, ranked.refuse, tmp_path)


def test_the_death_of_a_rank_ends_the_others_and_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert launched(2, ranked.die, tmp_path) == 1
    assert "rank 1 was ended by SIGKILL; --resume goes on" in capsys.readouterr().err
