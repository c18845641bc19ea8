# SPDX-License-Identifier: Apache-2.0
"""What is said of a trial that ended, out of its row.

Contract: pure. The outcome is the row's: valid, valid by the model's own doing, or a fault.
"""

from __future__ import annotations

from envkit.crew.types import Ended, Outcome
from envkit.run.figures import seen
from envkit.trajectory.types import Outcome as Worth
from envkit.trajectory.types import Trajectory


def ended(row: Trajectory) -> Ended:
    """Of a row that is durable."""
    identity, worth, figures = row.identity, row.outcome, seen(row)
    fault = worth.fault
    return Ended(
        trial=identity.trajectory_id,
        group=identity.group_id,
        sample=identity.sample,
        outcome=outcome_of(worth),
        reward=worth.reward if worth.reward_valid else None,
        fault=fault.code if fault else "",
        fault_owner=fault.owner if fault else "",
        fault_message=fault.message if fault else "",
        stop=figures.stop,
        tokens=figures.tokens,
        sampled_tokens=figures.sampled_tokens,
        oldest=min(figures.versions, default=None),
        newest=max(figures.versions, default=None),
        turns=figures.turns,
        seconds=dict(worth.phases),
    )


def outcome_of(worth: Worth) -> Outcome:
    """How it ended."""
    if not worth.reward_valid:
        return "fault"
    return "own" if worth.fault else "valid"
