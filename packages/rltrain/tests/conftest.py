# SPDX-License-Identifier: Apache-2.0
"""Modules whose every test needs torch are not even read where there is none.

They run in the trainer's environment, which every full run makes and which has it.
"""

from importlib.util import find_spec
from pathlib import Path

TRAINER = "pytestmark = pytest.mark.trainer\n"

if find_spec("torch") is None:
    tests = Path(__file__).parent.rglob("test_*.py")
    collect_ignore = [str(path) for path in tests if TRAINER in path.read_text("utf-8")]
