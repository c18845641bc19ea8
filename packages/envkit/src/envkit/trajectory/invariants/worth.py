# SPDX-License-Identifier: Apache-2.0
"""Which rollout it was, and what it was worth."""

from __future__ import annotations

import math
from collections.abc import Iterator

from envkit.trajectory.invariants.parts import Problem, amounts
from envkit.trajectory.types import Identity, Outcome, Stop


def identity(identity: Identity) -> Iterator[Problem]:
    """It can be told from others."""
    for field in ("trajectory_id", "group_id", "task"):
        if not getattr(identity, field):
            yield f"identity.{field}", "is empty"
    if identity.sample < 0:
        yield "identity.sample", f"is {identity.sample}; samples count from 0"


def outcome(outcome: Outcome, stop: Stop) -> Iterator[Problem]:
    """A reward that is called valid exists, and is nobody else's doing."""
    reward, fault = outcome.reward, outcome.fault
    if (outcome.verdict == "graded") != (reward is not None):
        yield "outcome.verdict", f"is {outcome.verdict}, and the reward {reward}"
    if reward is not None and not math.isfinite(reward):
        yield "outcome.reward", f"is {reward}"
    for name, value in outcome.rewards.items():
        if not math.isfinite(value):
            yield f"outcome.rewards[{name!r}]", f"is {value}"
    if stop is Stop.FAULT and fault is None:
        yield "outcome.fault", "is missing, and a fault ended the episode"
    if outcome.reward_valid and reward is None:
        yield "outcome.reward_valid", "is true, and there is no reward"
    if outcome.reward_valid and fault is not None and fault.owner != "model":
        yield "outcome.reward_valid", f"is true in spite of {fault.code} of the {fault.owner}"
    if outcome.loss_live and not outcome.reward_valid:
        yield "outcome.loss_live", "is true, and the reward is not valid"
    yield from _attempts(outcome)


def _attempts(outcome: Outcome) -> Iterator[Problem]:
    before = 0
    for index, attempt in enumerate(outcome.attempts):
        where = f"outcome.attempts[{index}]"
        if attempt.number <= before:
            yield f"{where}.number", f"is {attempt.number}; they count upwards from 1"
        before = attempt.number
        yield from amounts(where, attempt, "started_at", "seconds")
    for name, seconds in outcome.phases.items():
        if not (math.isfinite(seconds) and seconds >= 0):
            yield f"outcome.phases[{name!r}]", f"is {seconds}"
