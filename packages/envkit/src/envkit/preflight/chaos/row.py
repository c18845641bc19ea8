# SPDX-License-Identifier: Apache-2.0
"""One planned strike: what should follow, and what did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from envkit.fault import Owner
from envkit.preflight.chaos.choose import Strike
from envkit.preflight.chaos.expected import Expected
from envkit.preflight.gate import TOLERANCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One planned strike: what should follow, and what did."""

    strike: Strike
    expected: Expected
    took: bool
    effect: str
    owner: str
    """Of the fault that decided the struck attempt; empty where nothing was blamed."""
    code: str
    retried: bool
    reward: float | None
    """Of the struck attempt."""
    reward_valid: bool
    final_reward: float | None
    final_valid: bool
    full: float | None
    """What trials of this agent must earn; None where nobody knows."""

    @property
    def control(self) -> bool:
        """Whether nobody but the model is to be blamed for it."""
        return self.expected.owner in ("", Owner.MODEL.value)

    @property
    def detected(self) -> bool:
        """A fault stands on the attempt where one must, and none where none must."""
        return bool(self.code) == bool(self.expected.code)

    @property
    def owner_right(self) -> bool:
        return self.owner == self.expected.owner

    @property
    def class_right(self) -> bool:
        return self.code == self.expected.code

    @property
    def retried_right(self) -> bool:
        return self.retried is self.expected.retried

    @property
    def validity_right(self) -> bool:
        """Whether the struck attempt's reward is what the table says."""
        match self.expected.reward:
            case "kept":
                return self.reward_valid and self._is_full(self.reward)
            case "valid":
                return self.reward_valid
            case "invalid":
                return not self.reward_valid
            case "none":
                return not self.reward_valid and self.reward is None

    @property
    def lost(self) -> bool:
        """It must end with a reward, and has none, or not what it must earn."""
        if not self.expected.rewarded:
            return False
        full = self.expected.reward == "valid" or self._is_full(self.final_reward)
        return not (self.final_valid and full)

    @property
    def called_valid(self) -> bool:
        """An invalid reward that passes for a valid one; it is only once something struck."""
        return self.took and self.expected.reward in ("invalid", "none") and self.reward_valid

    @property
    def called_invalid(self) -> bool:
        """A valid reward that was taken away."""
        return self.expected.reward in ("kept", "valid") and not self.reward_valid

    @property
    def right(self) -> bool:
        """Whether everything about it is as the table says."""
        facts = (self.took, self.detected, self.owner_right, self.class_right)
        return all((*facts, self.retried_right, self.validity_right)) and not self.lost

    def _is_full(self, reward: float | None) -> bool:
        if self.full is None or reward is None:
            return reward is not None
        return abs(reward - self.full) <= TOLERANCE


def count(rows: Sequence[Row], fact: str) -> int:
    """Rows of which a property of `Row` is true."""
    return sum(bool(getattr(row, fact)) for row in rows)
