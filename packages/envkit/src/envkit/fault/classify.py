# SPDX-License-Identifier: Apache-2.0
"""From an exception, or Harbor's stored record of one, to a `Fault`: the same answer for both.

Looked at in this order: the class itself by name and module, its base classes, the members of an
exception group, what it was raised from, what was being handled when it was raised; then the
phase. Only the class itself, or what it says it was raised *from*, can make a reward valid.
"""

import logging
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace

from envkit.fault.errors import EnvkitError
from envkit.fault.table import (
    OPERATIONS,
    TEARDOWN,
    UNKNOWN_ROW,
    Row,
    row_by_name,
    row_of,
    row_of_own,
)
from envkit.fault.text import Chain, Link, describe, read_chain
from envkit.fault.types import (
    FINAL_GRADED,
    RERUN,
    RERUN_GRADED,
    VALID,
    Fault,
    Owner,
    Phase,
    Policy,
)

_log = logging.getLogger("envkit.fault")

_DEADLINE = re.compile(r"(?P<op>\S+) did not finish within [\d.e+]+ s")
_FOREIGN = re.compile(r"(?P<path>[\w.<>]+): (?P<message>.*)", re.DOTALL)
_OUTSIDE = {
    Phase.START: (Owner.SANDBOX, RERUN),
    Phase.SETUP: (Owner.HARNESS, RERUN_GRADED),
    Phase.GRADE: (Owner.VERIFIER, FINAL_GRADED),
}
"""Whose a fault of the model's kind is where the model does not act: a verifier out of memory."""

OWN_SHARE = 0.9
"""Share of the budget that the model's own doing must have used for a timeout to be the model's.

The rest is the harness's: a tenth of a 30-minute budget is 3 minutes, ten times what connecting
took at the p99 with 300 clients in one process (18 s).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetUse:
    """Evidence of what used up an agent's time budget. Waiting for an engine, a start, a judge or a
    faulted tool belongs in neither count."""

    budget_s: float
    model_s: float
    """Seconds in which the model's tokens were sampled."""
    commands_s: float
    """Seconds in which tool calls and commands of the model ran without a fault."""

    @property
    def own(self) -> bool:
        """Whether the model itself used the budget up."""
        return self.budget_s > 0 and self.model_s + self.commands_s >= OWN_SHARE * self.budget_s


@dataclass(frozen=True, slots=True)
class _Found:
    link: Link
    row: Row


def classify(
    error: BaseException | Mapping[str, object], phase: Phase, *, use: BudgetUse | None = None
) -> Fault:
    """The fault that an exception, or a stored record of one, stands for.

    A record is any mapping with Harbor's ``exception_type``, ``exception_message`` and
    ``exception_traceback``; `to_record` writes the same. ``use`` is the evidence without which an
    agent's timeout is nobody's, and its reward invalid. A fault nobody owns is logged as a warning.
    """
    record = describe(error) if isinstance(error, BaseException) else error
    chain = read_chain(record)
    found = _decide(chain, phase)
    owner, policy = _in_phase(found, phase)
    if use is not None and use.own and chain[0].name == "AgentTimeoutError":
        owner, policy = Owner.MODEL, VALID
    if phase is Phase.STOP or _operation(found.link) in TEARDOWN:
        policy = Policy(retry=False, grade=True, reward_valid=True)
    fault = Fault(
        code=_code(found.link), owner=owner, phase=phase, policy=policy, message=_say(chain, found)
    )
    if owner is Owner.UNKNOWN:
        _log.warning("unknown fault in %s: %s: %s", phase.value, fault.code, fault.message)
    return fault


def _decide(chain: Chain, phase: Phase) -> _Found:
    """The link that says whose fault it is, and its row."""
    top = _own(chain[0], phase)
    if top is not None and not top.row.wraps:
        return top
    for link in chain[1:]:
        beneath = _own(link, phase)
        if beneath is not None and _tells(beneath, phase):
            return beneath
    return top or _Found(chain[0], UNKNOWN_ROW)


def _tells(found: _Found, phase: Phase) -> bool:
    """Whether what lies beneath an exception may speak for it."""
    if found.row.owner_in(phase) in (Owner.UNKNOWN, Owner.CANCELLED):
        return False
    return found.link.explicit or not found.row.policy.reward_valid


def _own(link: Link, phase: Phase) -> _Found | None:
    """What a link says of itself, or the worst of its members."""
    if link.members:
        return _worst([_decide(member, phase) for member in link.members], phase)
    link = _restored(link)
    row = _row(link)
    return None if row is None else _Found(link, row)


def _worst(members: list[_Found], phase: Phase) -> _Found:
    """One fault for a group: a cancelled sibling says nothing, and one doubt makes it invalid."""
    told = [m for m in members if m.row.owner_in(phase) is not Owner.CANCELLED] or members
    return min(told, key=lambda m: (m.row.policy.reward_valid, _unowned(m, phase)))


def _unowned(found: _Found, phase: Phase) -> bool:
    return found.row.owner_in(phase) is Owner.UNKNOWN


def _restored(link: Link) -> Link:
    """A `ForeignError` stands for the class its message begins with."""
    found = _FOREIGN.match(link.message) if link.path.endswith(".ForeignError") else None
    if found is None or not link.path.startswith("envkit."):
        return link
    return replace(link, path=found["path"], message=found["message"])


def _row(link: Link) -> Row | None:
    if not link.located:
        return row_by_name(link.name)
    if (operation := _operation(link)) is not None:
        return OPERATIONS.get(operation, UNKNOWN_ROW)
    cls = _loaded(link.path)
    if cls is not None and issubclass(cls, EnvkitError):
        return row_of_own(cls)
    bases = (
        [] if cls is None else [f"{base.__module__}.{base.__qualname__}" for base in cls.__mro__]
    )
    rows = (row_of(path) for path in (_full(link.path), *bases))
    return next((row for row in rows if row is not None), None)


def _operation(link: Link) -> str | None:
    """The operation whose deadline passed, if that is what the link says."""
    if link.name != "DeadlineExceeded" or (link.located and not link.path.startswith("envkit.")):
        return None
    found = _DEADLINE.match(link.message)
    return None if found is None else found["op"]


def _full(path: str) -> str:
    return path if "." in path else f"builtins.{path}"


def _loaded(path: str) -> type | None:
    """The class of that path if this process has it; its base classes are looked at too.

    Nothing is imported for a record's sake: a class that is not loaded is judged by its own name.
    That can only make a reward invalid, never valid.
    """
    parts = _full(path).split(".")
    for cut in range(len(parts) - 1, 0, -1):
        found: object = sys.modules.get(".".join(parts[:cut]))
        for part in parts[cut:]:
            found = getattr(found, "__dict__", {}).get(part)
        if isinstance(found, type):
            return found
    return None


def _in_phase(found: _Found, phase: Phase) -> tuple[Owner, Policy]:
    owner, policy = found.row.owner_in(phase), found.row.policy
    if owner is Owner.MODEL and phase in _OUTSIDE:
        return _OUTSIDE[phase]
    return owner, policy


def _code(link: Link) -> str:
    operation = _operation(link)
    return link.name if operation is None else f"{link.name}:{operation}"


def _say(chain: Chain, found: _Found) -> str:
    top = _restored(chain[0])
    return found.link.message if found.link == top else f"{top.name}: {top.message}"
