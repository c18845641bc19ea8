# SPDX-License-Identifier: Apache-2.0
"""What must hold of a trajectory, checked when it is written and again when it is read.

Contract: `check` returns only where all of it holds, and names the row and the field otherwise. No
trainer needs to check anything of it again: token columns are of one length, the mask is true
exactly on what the engine sampled, each sampled token has the logarithm of a probability and its
weights, and a reward that is called valid exists and is nobody else's doing.

parts   what the checks are made of
stream  tokens, segments, and what of them was sampled
loop    requests, calls, budgets
worth   which rollout it was, and what it was worth
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from envkit.trajectory.errors import BrokenInvariant
from envkit.trajectory.invariants import loop, stream, worth
from envkit.trajectory.invariants.parts import Problem
from envkit.trajectory.invariants.stream import LOGPROB_MOST, mask_of
from envkit.trajectory.types import Episode, Sampling, Trajectory

__all__ = ["LOGPROB_MOST", "check", "check_episode", "mask_of"]

_CHECKS: Final = (
    stream.arrays,
    stream.segments,
    stream.sampled,
    loop.requests,
    loop.calls,
    loop.budgets,
)
"""In this order: each takes for granted what the ones before it found to hold."""


def check(trajectory: Trajectory) -> None:
    """Check a row.

    Raises:
        BrokenInvariant: the first thing that does not hold.
    """
    row = trajectory.identity.trajectory_id
    _raise_first(row, worth.identity(trajectory.identity))
    check_episode(row, trajectory.episode, trajectory.identity.sampling)
    _raise_first(row, worth.outcome(trajectory.outcome, trajectory.episode.stop))


def check_episode(row: str, episode: Episode, sampling: Sampling) -> None:
    """Check what the loop saw, before anything is known of what it was worth.

    Raises:
        BrokenInvariant: the first thing that does not hold.
    """
    for problems in _CHECKS:
        _raise_first(row, problems(episode))
    _raise_first(row, stream.alternatives(episode.stream, sampling))


def _raise_first(row: str, problems: Iterator[Problem]) -> None:
    for field, problem in problems:
        raise BrokenInvariant(row, field, problem)
