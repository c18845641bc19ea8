# SPDX-License-Identifier: Apache-2.0
"""The trial that warms the process which trials fork from: a whole one, that leaves nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, sys
from envkit.trial.rehearsal import rehearse
rehearse()
import harbor.trial.single_step, harbor.verifier.verifier
print(len(os.listdir("/proc/self/task")), os.listdir(os.environ["TMPDIR"]))
"""


def test_a_rehearsal_ends_with_its_reward_and_leaves_no_thread_and_no_file(tmp_path: Path):
    env = {**os.environ, "TMPDIR": str(tmp_path), "HARBOR_TELEMETRY": "0"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=env, capture_output=True, text=True, timeout=120
    )
    assert (done.stdout.strip(), done.returncode) == ("1 []", 0), done.stderr


def test_a_rehearsal_that_is_not_rewarded_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from envkit.trial import rehearsal

    async def lost(self: rehearsal.Nowhere, source_dir: str, target_dir: Path | str) -> None:
        raise ConnectionResetError("lost")

    monkeypatch.setattr(rehearsal.Nowhere, "download_dir", lost)
    with pytest.raises(RuntimeError, match="rehearsal"):
        rehearsal.rehearse()
