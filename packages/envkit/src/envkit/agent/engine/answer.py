# SPDX-License-Identifier: Apache-2.0
"""What an engine said, gathered event by event, before anybody judges it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Answer:
    """The parts of one answer; a whole answer is one event."""

    ids: list[int] = field(default_factory=list[int])
    logprobs: list[float | None] = field(default_factory=list[float | None])
    named: list[int] = field(default_factory=list[int])
    """Which token each logprob is said to be of."""
    alternatives: list[list[tuple[int, float]]] = field(
        default_factory=list[list[tuple[int, float]]]
    )
    """Of each token, where more than the sampled one were asked for."""
    spans: list[dict[str, Any]] | None = None
    finish: str | None = None
    ids_missing: bool = False
    """It came without token ids."""
    logprobs_missing: bool = False
    prompt_tokens: int | None = None
    sampled_tokens: int | None = None
    """As the engine counted them."""
    prompt_same: bool | None = None
    """Whether the prompt it says it sampled after is the one it was sent; None: it did not say."""
    queue_s: float | None = None
