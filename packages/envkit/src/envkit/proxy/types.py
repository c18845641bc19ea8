# SPDX-License-Identifier: Apache-2.0
"""What a client asks for, and what it is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from envkit.agent.types import CallRequest, Message, Role, Sampled, ToolSpec
from envkit.trajectory.types import ParseFault, Sampling, Stop

type FinishReason = Literal["stop", "length", "tool_calls"]
type Reason = Literal[
    "history_edited",
    "answer_changed",
    "history_unknown",
    "system_changed",
    "tools_changed",
    "sampling_changed",
    "asked_again",
    "concurrent",
    "ambiguous",
    "call_lost",
    "unanswered_call",
    "other_messages",
    "engine_fault",
]
"""Of a mark; docs/proxy.md says what each means."""


class NotServed(Exception):
    """A request that is answered with an error; nothing of it enters a stream."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A message as it is compared: role, text, name, and calls with their ids and arguments."""

    role: Role
    digest: bytes
    thought: bytes | None
    """Of an assistant's reasoning; None where a client left it out, which clients may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request for one answer."""

    messages: tuple[Message, ...]
    links: tuple[Link, ...]
    """Of the messages, one each."""
    tools: tuple[ToolSpec, ...]
    tools_digest: bytes
    sampling: Sampling
    model: str = ""
    """What the client calls the model; empty for whichever there is."""
    max_tokens: int | None = None
    stream: bool = False
    include_usage: bool = False
    logprobs: bool = False
    token_ids: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call as the client is told of it."""

    request: CallRequest
    arguments: str
    """JSON text, which the client has to send back as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a sample says to the client."""

    content: str
    thinking: str
    calls: tuple[Call, ...]
    finish: FinishReason
    faults: tuple[ParseFault, ...] = ()
    lost: str = ""
    """What of it the client is not told: a broken call beside others that can be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Why a stream cannot be proven to be the whole of what the model saw and did."""

    code: Reason
    message: str


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Answered:
    """An answer, and where it stands."""

    said: Said
    sampled: Sampled
    conversation: str
    row: str
    """Id that the stream will have in the store."""
    mark: Mark | None
    pieces: tuple[str, ...] = ()
    """Text of each sampled token, where it was asked for."""
    prompt_ids: tuple[int, ...] = ()
    """Where they were asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What a client says of a conversation that ended."""

    reward: float | None = None
    reward_valid: bool = True
    """Of a reward: nobody's fault but the model's stands against it, as far as the client knows."""
    rewards: Mapping[str, float] = field(default_factory=dict[str, float])
    stop: Stop | None = None
    task: str = ""
    group_id: str = ""
    sample: int = 0
