# SPDX-License-Identifier: Apache-2.0
"""A step moves every parameter, and a restored backend takes the step that it would have taken."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from small import DEADLINE_S, qwen3

pytestmark = pytest.mark.trainer


def test_a_restored_backend_goes_on_to_the_bit(tmp_path: Path) -> None:
    program = Path(__file__).with_name("steps.py")
    command = [sys.executable, str(program), str(qwen3(tmp_path / "model")), str(tmp_path)]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=DEADLINE_S)
    held = json.loads(said.stdout.splitlines()[-1])
    assert len(held) == 4
    assert [what for what, holds in held.items() if not holds] == []
