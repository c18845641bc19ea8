# SPDX-License-Identifier: Apache-2.0
"""What a trajectory is told by: turns, shares of tokens and seconds, unlikely tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from envkit.trajectory.types import CallRecord, EngineRequest, ParseFault, Trajectory


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call of a turn."""

    record: CallRecord
    arguments: Mapping[str, Any] | None
    """None where no text says what they were."""
    result: str | None
    """As the model saw it; None where it was shown none, or without text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the harness added after a turn."""

    what: str
    """``repair``, ``nudge``, ``stop token`` or ``message``."""
    text: str
    tokens: int | None
    """None where they are part of the turn's observation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What the model said at once, and what came of it."""

    number: int
    request: EngineRequest
    text: str | None
    """All of it, special tokens spelt out; None without a tokenizer."""
    content: str
    thinking: str
    calls: tuple[Call, ...]
    faults: tuple[ParseFault, ...]
    observed: str | None
    """All the observations as one text."""
    observed_tokens: int
    told: tuple[Told, ...]
    waited_s: float
    """Before its request, since the one before it and its calls were done."""
    mean_logprob: float
    weights: tuple[tuple[int, int], ...]
    """Token of the turn and the version from there on; only where it is another than before."""

    @property
    def sampled(self) -> int:
        """Tokens of the model."""
        return self.request.sampled_tokens

    @property
    def added(self) -> int:
        """Tokens that were appended after it."""
        return self.observed_tokens + sum(each.tokens or 0 for each in self.told)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A part of a whole."""

    name: str
    amount: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A part of the stream or of the time, in its place."""

    kind: str
    start: float
    stop: float
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlikely:
    """A token that the model gave little chance."""

    turn: int
    position: int
    """In the stream."""
    logprob: float
    before: str
    token: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One trajectory."""

    trajectory: Trajectory
    has_text: bool
    prompt: str | None
    prompt_tokens: int
    turns: tuple[Turn, ...]
    tokens: tuple[Share, ...]
    """Where the context went, what is left of it last."""
    seconds: tuple[Share, ...]
    """Where the time went."""
    stream: tuple[Stretch, ...]
    course: tuple[Stretch, ...]
    """Requests and calls by time."""
    unlikely: tuple[Unlikely, ...]
    notes: tuple[str, ...] = ()
