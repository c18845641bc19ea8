# SPDX-License-Identifier: Apache-2.0
"""Names of trials, which are names of files too, and no two of them the same."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

SLUG_MOST: Final = 100
"""Characters. A file name has 255, and the trial's boxes and directories add to this one."""


def slugs_of(names: Sequence[str]) -> dict[str, str]:
    """A file name for each task's name, no two the same however alike the names are.

    Where a name is already one it stays; one that is too long, or that another comes down to as
    well, ends in a digest of itself.
    """
    plain = {name: _plain(name) for name in names}
    shared = Counter(plain.values())
    return {
        name: slug if shared[slug] == 1 and len(slug) <= SLUG_MOST else _with_digest(name, slug)
        for name, slug in plain.items()
    }


def trial_id(slug: str, sample: int) -> str:
    """``<slug>__<sample>``."""
    return f"{slug}__{sample:03d}"


def _plain(name: str) -> str:
    """Only letters, digits, ``.``, ``_`` and ``-``, and no dot in front."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".")


def _with_digest(name: str, slug: str) -> str:
    return f"{slug[:SLUG_MOST]}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:12]}"
