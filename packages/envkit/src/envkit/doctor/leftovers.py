# SPDX-License-Identifier: Apache-2.0
"""What killed runs left behind, and its removal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from envkit.doctor.types import Finding, Status
from envkit.sandbox import reaper

NAME: Final = "left over"
REMAINS: Final = "belongs to another user, or is no run's: remove it by hand"


def examine(*, reap: bool) -> Iterator[Finding]:
    """What dead runs left; removed first, where that is asked for."""
    left = reaper.find_leftovers()
    if reap:
        found, left = left, reaper.reap()
        for gone in sorted(set(found) - set(left)):
            yield Finding(name="removed", status=Status.OK, text=f"{gone.kind} {gone.what}")
    for leak in left:
        yield Finding(
            name=NAME,
            status=Status.FAIL,
            text=f"{leak.kind} {leak.what}",
            fix=REMAINS if reap else "envkit doctor --reap",
        )
    if not left:
        yield Finding(name=NAME, status=Status.OK, text="nothing")
