# SPDX-License-Identifier: Apache-2.0
"""Modules of a world's generator in a test's own process."""

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

WORLDS = Path(__file__).parents[4] / "tasks/worlds"


def world_modules(world: str, names: Sequence[str]) -> list[ModuleType]:
    """Import `names` as the world's generator would; none of them stays importable."""
    home = WORLDS / world
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "dont_write_bytecode", True)  # it would lie among the world's files
        patch.syspath_prepend(str(home))
        found = [importlib.import_module(name) for name in names]
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(f"{home}/"):
            del sys.modules[name]
    return found
