# SPDX-License-Identifier: Apache-2.0
"""What can be known of a row without reading it."""

from __future__ import annotations

from dataclasses import dataclass

from envkit.trajectory.types import Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The facts that rows are chosen by, as the index of a file has them."""

    trajectory_id: str
    group_id: str
    sample: int
    task: str
    stop: str
    reward: float | None
    reward_valid: bool
    loss_live: bool
    verdict: str
    fault: str
    """Its code, empty where there is none."""
    fault_owner: str
    tokens: int
    sampled_tokens: int


def head_of(trajectory: Trajectory) -> Head:
    """The head of a row."""
    identity, outcome, episode = trajectory.identity, trajectory.outcome, trajectory.episode
    return Head(
        trajectory_id=identity.trajectory_id,
        group_id=identity.group_id,
        sample=identity.sample,
        task=identity.task,
        stop=episode.stop.value,
        reward=outcome.reward,
        reward_valid=outcome.reward_valid,
        loss_live=outcome.loss_live,
        verdict=outcome.verdict,
        fault=outcome.fault.code if outcome.fault else "",
        fault_owner=outcome.fault.owner if outcome.fault else "",
        tokens=len(episode.stream.token_ids),
        sampled_tokens=episode.used.sampled_tokens,
    )
