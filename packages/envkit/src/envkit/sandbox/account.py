# SPDX-License-Identifier: Apache-2.0
"""What a closed environment used, entered in the ledger; what agent code ran into is the model's.

Control groups say who was killed for what. A kill by a host that is itself out of memory looks
alike but for one thing: the box was not near its own limit. That one is not the model's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from envkit.fault import (
    DiskFull,
    EndlessCommand,
    EnvkitError,
    HostOverloaded,
    OutOfMemory,
    ProcessLimit,
    VerifierCrashed,
)
from envkit.sandbox.ledger import Ledger
from envkit.sandbox.limits import Limits, Usage


def account(book: Ledger, role: str, closed: Mapping[str, Any], limits: Limits) -> None:
    """Enter the answer to ``close`` of the environment in ``role``."""
    usage = Usage(**closed["usage"])
    book.usage[role] = usage
    book.left += closed["left"]
    if role == "agent":
        book.usage["gateway"] = Usage(**closed["gateway"])
        book.commands_s += closed["commands_s"]
        _enter(book, "act", [*_ran_into(usage, limits), *_outlived(closed)])
    else:
        _enter(book, "grade", _verifier_ran_into(usage))


def _enter(book: Ledger, phase: str, errors: Iterable[EnvkitError]) -> None:
    with book.during(phase):
        for error in errors:
            book.note(error)


def _ran_into(usage: Usage, limits: Limits) -> Iterator[EnvkitError]:
    if usage.ran_out_of_memory(limits):
        yield OutOfMemory(f"{usage.oom_kills} processes of the agent's box were killed")
    elif usage.oom_kills:
        yield HostOverloaded("the host ran out of memory and killed the agent's processes")
    if usage.fork_refusals:
        yield ProcessLimit("the agent's box reached its limit of processes")
    if usage.disk_full:
        yield DiskFull("the agent's box has written all it may")


def _outlived(closed: Mapping[str, Any]) -> Iterator[EnvkitError]:
    if closed["endless"]:
        yield EndlessCommand(f"{closed['endless']} commands of the agent outlived their limit")
    if closed["starved"]:
        yield HostOverloaded(
            f"{closed['starved']} commands of the agent outlived their limit waiting for a core"
        )


def _verifier_ran_into(usage: Usage) -> Iterator[EnvkitError]:
    """A verifier that lost a process or a file may still write a number; nobody knows of what."""
    if usage.oom_kills:
        yield VerifierCrashed(f"{usage.oom_kills} processes of the verifier ran out of memory")
    if usage.fork_refusals:
        yield VerifierCrashed("the verifier reached its box's limit of processes")
    if usage.disk_full:
        yield VerifierCrashed("the verifier filled its box's storage")
