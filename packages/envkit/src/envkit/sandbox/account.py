# SPDX-License-Identifier: Apache-2.0
"""What a closed environment used, entered in the ledger; what agent code ran into is the model's.

Control groups say who was killed for what. A kill by a host that is itself out of memory looks
alike but for one thing: the box was not near its own limit. That one is not the model's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from envkit.fault import (
    DiskFull,
    EndlessCommand,
    EnvkitError,
    OutOfMemory,
    ProcessLimit,
    SandboxDied,
)
from envkit.sandbox.ledger import Ledger
from envkit.sandbox.limits import Limits, Usage


def account(book: Ledger, role: str, closed: Mapping[str, Any], limits: Limits) -> None:
    """Enter the answer to ``close`` of the environment in ``role``."""
    usage = Usage(**closed["usage"])
    book.usage[role] = usage
    book.left += closed["left"]
    if role != "agent":
        return
    book.usage["gateway"] = Usage(**closed["gateway"])
    with book.during("act"):
        for error in _ran_into(usage, limits, closed["endless"]):
            book.note(error)


def _ran_into(usage: Usage, limits: Limits, endless: int) -> Iterator[EnvkitError]:
    if usage.ran_out_of_memory(limits):
        yield OutOfMemory(f"{usage.oom_kills} processes of the agent's box were killed")
    elif usage.oom_kills:
        yield SandboxDied("the host ran out of memory and killed processes of the agent's box")
    if usage.fork_refusals:
        yield ProcessLimit("the agent's box reached its limit of processes")
    if usage.disk_full:
        yield DiskFull("the agent's box has written all it may")
    if endless:
        yield EndlessCommand(f"{endless} commands of the agent outlived their limit")
