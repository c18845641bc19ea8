# SPDX-License-Identifier: Apache-2.0
"""What passes between the parts of the agent loop: messages, tools, samples, observations.

The loop knows its parts by the protocols here: a `Template` that turns messages into ids, an
`Engine` that samples ids after ids, a `Parser` that reads calls out of a sample, a `Toolbelt` that
carries them out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast

import orjson

from envkit.trajectory.types import EngineId, Finish, Floats, Ids, Sampling

type Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as the model is told of it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema of an object."""

    def to_openai(self) -> dict[str, Any]:
        """As chat templates take it."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": dict(self.parameters),
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    """A call that the model asks for."""

    name: str
    arguments: Mapping[str, Any]
    call_id: str = ""
    """Unique in the episode: given by the loop, ``call-TURN-NUMBER``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation, as chat templates take it."""

    role: Role
    content: str
    calls: tuple[CallRequest, ...] = ()
    """Of an assistant."""
    call_id: str = ""
    """Of a tool's answer: the call it answers."""
    name: str = ""
    """Of a tool's answer: the tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A call that could not be read."""

    code: str
    """As `envkit.trajectory.types.ParseFault` has them."""
    message: str
    """What the model is told: what is wrong, where, and how to say it right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What a sample says."""

    content: str
    """Without thinking and calls."""
    thinking: str = ""
    calls: tuple[CallRequest, ...] = ()
    """In order, valid by their tools' schemas; without ids yet."""
    unreadable: tuple[Unreadable, ...] = ()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Sampled:
    """What the engine sampled in one request. Arrays have one length."""

    token_ids: Ids
    """The stop token included, where one ended it."""
    logprobs: Floats
    weight_version: Ids
    """-1 where the engine does not tell."""
    finish: Finish
    prompt_tokens: int
    """As the engine counted them."""
    queued_s: float = 0.0
    """Of ``seconds``, before the engine began with it: failed tries, the waits between, and its
    queue; where it does not tell its queue but streams, all before the first token."""
    first_token_s: float = 0.0
    """From the first try's start; equal to ``seconds`` where the engine does not stream."""
    seconds: float = 0.0
    """From the first try's start to the end of the last one."""
    kv_version: int = -1
    tries: int = 1
    topk_ids: Ids | None = None
    topk_logprobs: Floats | None = None


class EncodedPrompt:
    """A growing list of ids and its JSON text, each id encoded once."""

    __slots__ = ("_ids", "_text")

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._text = bytearray()

    @property
    def ids(self) -> Sequence[int]:
        """All ids so far; not to be changed."""
        return self._ids

    @property
    def text(self) -> bytearray:
        """The ids as they stand between the brackets of a JSON array; not to be changed."""
        return self._text

    def extend(self, ids: Sequence[int]) -> None:
        """Append ids."""
        plain = cast("list[int]", ids) if type(ids) is list else list(map(int, ids))
        if not plain:
            return
        if self._ids:
            self._text += b","
        self._text += orjson.dumps(plain)[1:-1]
        self._ids += plain


class Engine(Protocol):
    """Samples token ids after token ids."""

    @property
    def identity(self) -> EngineId:
        """Which engine it is; known once it was asked."""
        ...

    @property
    def context_tokens(self) -> int:
        """The longest stream it takes."""
        ...

    async def sample(
        self,
        prompt: EncodedPrompt,
        *,
        max_tokens: int,
        stop_ids: Sequence[int],
        sampling: Sampling,
        request_id: str,
    ) -> Sampled:
        """Sample until a stop token or ``max_tokens``.

        Raises:
            EngineError: it failed, answered what is not the protocol, or left out what is needed.
            DeadlineExceeded: nothing came in time (op ``generate``, or ``generate_idle`` between
                the tokens of a stream).
        """
        ...


class Template(Protocol):
    """The chat template of one model, with its tokenizer."""

    family: str
    """``qwen3``, ``glm``, ``llama3``, ``hermes``."""
    tokenizer_digest: str
    template_digest: str
    stop_ids: tuple[int, ...]
    """What ends a turn of the model."""

    def prompt(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[int]:
        """Ids from the first to where the model samples."""
        ...

    def observations(self, messages: Sequence[Message], *, after: int | None) -> list[int]:
        """Ids that follow a turn of the model, up to where it samples again.

        ``messages`` are tool answers or one of the user; ``after`` is the last id of the turn: a
        stop token, which some families' answers begin with.
        """
        ...

    def end_of_turn(self, last: int) -> list[int]:
        """Stop token to add to a turn that ended with ``last`` and without one; else nothing."""
        ...

    def encode(self, text: str) -> list[int]:
        """Ids of plain text; what looks like a special token is text."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, special tokens spelt out."""
        ...


class Parser(Protocol):
    """Reads the calls of one format."""

    name: str

    def parse(self, text: str, tools: Sequence[ToolSpec]) -> Parsed:
        """What a sample says; ``text`` is without its stop token. Never raises."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a call came to."""

    call: CallRequest
    ok: bool
    text: str
    """All of it; the loop shows the model what fits."""
    seconds: float
    code: str = ""
    model_owned: bool = True
    """False where somebody else's fault spoiled the call: its time is not the model's."""
    final: str | None = None
    """The answer, of a call that gives it."""
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Toolbelt(Protocol):
    """The tools of one episode."""

    name: str

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """What the model is told of now."""
        ...

    async def call(self, request: CallRequest) -> Observation:
        """Carry out one call; what the tool says no to is an observation.

        Raises:
            EnvkitError: the infrastructure failed, so that nothing can be said of the call.
        """
        ...

    async def keep(self, name: str, text: str) -> str:
        """Leave the whole of a long result where the agent can read it; returns the path."""
        ...
