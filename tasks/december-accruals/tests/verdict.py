# SPDX-License-Identifier: Apache-2.0
"""From marks to the reward file, or to no file and a non-zero exit where nothing can be judged."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

FILES = Path(os.environ.get("FILESYSTEM_ROOT", "/filesystem"))
LOGS = Path(os.environ.get("LOGS_ROOT", "/logs"))

type Marks = dict[str, int]


def conclude(judge: Callable[[Path], Marks]) -> None:
    """Judge the drive that arrived, and write the mean of the marks as the reward."""
    if not FILES.is_dir():
        sys.exit(f"verifier: {FILES} did not arrive, so there is nothing to judge")
    marks = judge(FILES)
    print(json.dumps(marks))
    rewards = {"reward": sum(marks.values()) / len(marks), **marks}
    verifier = LOGS / "verifier"
    verifier.mkdir(parents=True, exist_ok=True)
    draft = verifier / "reward.json.tmp"
    draft.write_text(json.dumps(rewards), encoding="utf-8")
    draft.replace(verifier / "reward.json")
