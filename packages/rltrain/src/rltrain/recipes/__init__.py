# SPDX-License-Identifier: Apache-2.0
"""Settings of whole runs as TOML files, each value with where it is from.

tiny-cpu          the policy of ``rltrain tiny-policy`` on two cores
overfit           the gate: 32 tasks, synchronous
qwen36-35b        the published run of Qwen3.6-35B-A3B
qwen35-397b       the published run of Qwen3.5-397B-A17B

Contract: every one is read as it stands, but for ``policy.path``, which is this machine's to give.
"""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Final

from rltrain.refused import Refused

RECIPES: Final = ("tiny-cpu", "overfit", "qwen36-35b", "qwen35-397b")
"""Their names, in the order of what they cost."""


def recipe_file(name: str) -> Path:
    """The file of a recipe that is shipped.

    Raises:
        Refused: there is none of that name.
    """
    if name not in RECIPES:
        near = difflib.get_close_matches(name, RECIPES, n=1)
        more = f"did you mean {near[0]}?" if near else f"there are {', '.join(RECIPES)}"
        raise Refused(f"recipe {name}: there is none of that name; {more}")
    return Path(__file__).with_name(f"{name}.toml")
