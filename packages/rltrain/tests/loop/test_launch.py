# SPDX-License-Identifier: Apache-2.0
"""Several ranks are one command: one line, one exit status, one end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rltrain.loop.launch import launched
from rltrain.refused import Refused

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
import ranked
import recorded

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


def test_an_end_at_once_is_no_good_end(tmp_path: Path) -> None:
    assert launched(2, ranked.impatient, tmp_path) == 130


def test_ranks_may_be_torchruns(tmp_path: Path) -> None:
    policy = recorded.policy(tmp_path / "policy")
    recorded.record(tmp_path / "store", policy, recorded.Asked(groups=2, samples=3, said=6))
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    words = ["fit", "--trajectories", "store", "--policy", "policy", "--out", "run", "--json"]
    done = subprocess.run(
        [sys.executable, *torchrun, "-m", "rltrain", *words, "--set", 'policy.dtype="float32"'],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["step"] == 1
    commit = tmp_path / "run/checkpoints/step-00000001/commit.json"
    assert json.loads(commit.read_text("utf-8"))["ranks"] == 2
