# SPDX-License-Identifier: Apache-2.0
"""What a sync ends in that is not right.

SyncError                no engine was reached, or the trainer's weights could not be sent
├── ReplicasLost         engines failed; the others hold the new version: replace them and go on
└── WrongWeights         an engine does not hold what the trainer has: nothing more may be sampled
    └── CanaryAlarm      it scores tokens otherwise than the trainer does

Each is one line: what, on which replica, in which operation and tensor, and what the others hold.
"""

from __future__ import annotations

from collections.abc import Sequence

from rltrain.refused import Refused, Stopped
from rltrain.sync.types import Outcome


class SyncError(Refused):
    """Engines do not hold what they should."""

    def __init__(self, message: str, outcomes: Sequence[Outcome] = ()) -> None:
        super().__init__(message)
        self.outcomes = tuple(outcomes)
        """Of every replica that was asked."""


class ReplicasLost(SyncError):
    """Some engines failed, and others hold the new version."""


class WrongWeights(SyncError, Stopped):
    """An engine does not hold what the trainer has."""


class CanaryAlarm(WrongWeights):
    """An engine scores tokens otherwise than the trainer does."""


class OperationFailed(Exception):
    """One operation on one engine; which, is said by whoever asked for it."""
