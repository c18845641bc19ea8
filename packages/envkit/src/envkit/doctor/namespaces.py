# SPDX-License-Identifier: Apache-2.0
"""User namespaces: whether this user can make them, and each thing that stands in the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from envkit.doctor.types import Finding, Machine, Status
from envkit.sandbox.userns import Blocker, blockers

NAME: Final = "user namespaces"
FOR: Final = "local boxes"
UNKNOWN: Final = Blocker(
    what="refused, by nothing that can be read here",
    fix="allow unprivileged user namespaces, or use --env unsafe-process without isolation",
)


def examine(machine: Machine, boxes_can_be_made: bool) -> Iterator[Finding]:
    """One finding where they can be made, one for each blocker where they cannot."""
    set_here = blockers(machine.roots.proc, machine.roots.root)
    if can_be_made(machine, boxes_can_be_made):
        noted = f", although {'; '.join(each.what for each in set_here)}"
        yield Finding(
            name=NAME,
            status=Status.OK,
            text=f"can be made{noted if set_here else ''}",
            needed_for=FOR,
        )
        return
    for each in set_here or [UNKNOWN]:
        yield Finding(name=NAME, status=Status.FAIL, text=each.what, fix=each.fix, needed_for=FOR)


def can_be_made(machine: Machine, boxes_can_be_made: bool) -> bool:
    """Tried apart from bubblewrap, which may be absent, where util-linux is there."""
    unshare = machine.find("unshare")
    if boxes_can_be_made or unshare is None:
        return boxes_can_be_made
    return machine.ask([unshare, "--user", "--map-root-user", "true"]).ok
