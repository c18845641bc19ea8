# SPDX-License-Identifier: Apache-2.0
"""What envkit's own exporter says beside the steps of an ATIF trajectory: why the episode stopped.

A stop says more than the look of the last turn: one that was cut off looks like an answer. A cap, a
full context, turns that were cut off too often and time that was used up are the model's own and no
fault; whose a fault is stands in the outcome, where there is one.
"""

from __future__ import annotations

from typing import Any, Final

from envkit.audit.shape import integer, mapping, number, string
from envkit.audit.types import Owner, RunFault, Verdict

FINAL: Final = "final"
TURN_CAP: Final = "turn_cap"
STOPS: Final = frozenset({FINAL, TURN_CAP, "context", "length", "timeout", "fault"})
"""Values of `envkit.trajectory.types.Stop`, which would bring numpy along."""
_ENVIRONMENT: Final = frozenset({"sandbox", "server"})


def stop_of(document: object) -> str:
    """Why it ended; empty where the document is not of our making."""
    return known_stop(mapping(mapping(document).get("extra")).get("stop"))


def known_stop(value: object) -> str:
    """The stop, if it is one of ours."""
    named = string(value)
    return named if named in STOPS else ""


def turn_cap_of(document: object) -> int | None:
    """How many turns it might take; None where nothing says so, or as many as it liked."""
    metrics = mapping(mapping(document).get("final_metrics"))
    limits = mapping(mapping(metrics.get("extra")).get("limits"))
    return integer(limits.get("turns")) or None


def answered(stop: str, looks: bool | None) -> bool | None:
    """Whether an answer was handed in; by its looks only where no stop is known."""
    return stop == FINAL if stop else looks


def verdict_of(outcome: dict[str, Any], source: str) -> Verdict:
    """What an outcome says of grading."""
    reward = number(outcome.get("reward"))
    if outcome.get("verdict") == "graded" and reward is not None:
        return Verdict(source=source, reward=reward, valid=outcome.get("reward_valid") is True)
    code = string(mapping(outcome.get("fault")).get("code"))
    return Verdict(source=source, problem=f"no verdict: {code}" if code else "no verdict")


def faults_of(outcome: dict[str, Any]) -> tuple[RunFault, ...]:
    """The fault of an outcome; a reward beside one of the model's own stays valid."""
    fault = mapping(outcome.get("fault"))
    if not fault:
        return ()
    owner = string(fault.get("owner"))
    return (
        RunFault(
            code=string(fault.get("code")),
            owner=owner_named(owner),
            message=string(fault.get("message")),
            reward_valid=owner == Owner.MODEL,
        ),
    )


def owner_named(name: str) -> Owner:
    """The owner as an audit has it: boxes and servers are the environment."""
    if name in _ENVIRONMENT:
        return Owner.ENVIRONMENT
    return Owner(name) if name in Owner else Owner.UNKNOWN
