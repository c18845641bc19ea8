# SPDX-License-Identifier: Apache-2.0
"""What a sample of so many tokens costs the trainer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """a L + b L² for a sample of L tokens: matrices by token, attention by pairs of tokens."""

    a: float
    b: float

    def of(self, length: int) -> float:
        """In units of ``b`` and ``a``, whatever those are."""
        return self.a * length + self.b * length * length
