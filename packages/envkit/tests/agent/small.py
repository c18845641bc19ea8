# SPDX-License-Identifier: Apache-2.0
"""The smallest parts a loop can have: a byte a token, one line a call, turns as they are written.

They are whole: the template has special tokens and cuts inside characters can happen, the parser
names what it cannot read, the engine keeps to its limits. What they share is that a test can say
in a line what happens.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from envkit.agent.limits import Account
from envkit.agent.loop import Loop
from envkit.agent.types import (
    CallRequest,
    EncodedPrompt,
    Message,
    Observation,
    Parsed,
    Sampled,
    ToolSpec,
    Unreadable,
)
from envkit.trajectory.invariants import check_episode
from envkit.trajectory.types import EngineId, Episode, Finish, Limits, Sampling, Stop

BEGIN, END, SYSTEM, USER, MODEL, TOOL = range(256, 262)
_ROLES = {"system": SYSTEM, "user": USER, "assistant": MODEL, "tool": TOOL}
_SPELT = {BEGIN: "<s>", END: "</s>", SYSTEM: "<sys>", USER: "<user>", MODEL: "<m>", TOOL: "<tool>"}


class ByteTemplate:
    """A byte a token, and one token before and after each message."""

    family = "bytes"
    tokenizer_digest = "t" * 64
    template_digest = "c" * 64
    stop_ids = (END,)

    def prompt(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[int]:
        listed = json.dumps([tool.name for tool in tools])
        return [BEGIN, *self.encode(listed), *self.observations(messages, after=None)]

    def observations(self, messages: Sequence[Message], *, after: int | None) -> list[int]:
        assert after in (None, END), "an answer begins after the end of a turn"
        parts = ([_ROLES[m.role], *self.encode(m.content), END] for m in messages)
        return [*itertools.chain.from_iterable(parts), MODEL]

    def end_of_turn(self, last: int) -> list[int]:
        return [] if last == END else [END]

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, ids: Sequence[int]) -> str:
        spelt = b"".join(bytes([i]) if i < 256 else _SPELT[i].encode() for i in ids)
        return spelt.decode(errors="replace")


class LineParser:
    """``CALL tool {…}`` on a line of its own; the other lines are what it says."""

    name = "lines"

    def parse(self, text: str, tools: Sequence[ToolSpec]) -> Parsed:
        lines = text.split("\n")
        calls: list[CallRequest] = []
        unreadable: list[Unreadable] = []
        for line in lines:
            if line.startswith("CALL"):
                self._read(line, {tool.name for tool in tools}, calls, unreadable)
        said = "\n".join(line for line in lines if not line.startswith("CALL"))
        return Parsed(content=said, calls=tuple(calls), unreadable=tuple(unreadable))

    def _read(
        self, line: str, names: set[str], calls: list[CallRequest], unreadable: list[Unreadable]
    ) -> None:
        _, name, arguments = [*line.split(" ", 2), "", ""][:3]
        try:
            call = CallRequest(name=name, arguments=json.loads(arguments))
        except ValueError:
            unreadable.append(Unreadable(code="malformed", message="arguments are JSON"))
            return
        if name in names:
            calls.append(call)
        else:
            unreadable.append(Unreadable(code="unknown_tool", message=f"no tool {name}"))


@dataclass(frozen=True, kw_only=True)
class Say:
    """One turn of the model."""

    text: str
    seconds: float = 1.0
    queued_s: float = 0.0
    finish: Finish | None = None
    logprob: float = -0.5


@dataclass
class ScriptEngine:
    """Says its turns one after the other; an exception among them is raised."""

    turns: Sequence[str | Say | BaseException]
    context_tokens: int = 100_000
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    identity: EngineId = field(default_factory=lambda: EngineId(model="script"))

    async def sample(
        self,
        prompt: EncodedPrompt,
        *,
        max_tokens: int,
        stop_ids: Sequence[int],
        sampling: Sampling,
        request_id: str,
    ) -> Sampled:
        turn = self.turns[len(self.asked)]
        ids = list(prompt.ids)
        self.asked.append({"ids": ids, "max_tokens": max_tokens, "id": request_id})
        if isinstance(turn, BaseException):
            raise turn
        say = Say(text=turn) if isinstance(turn, str) else turn
        whole = [*say.text.encode(), stop_ids[0]]
        finish: Finish = "stop" if len(whole) <= max_tokens else "length"
        sampled = np.array(whole[:max_tokens], dtype=np.int32)
        return Sampled(
            token_ids=sampled,
            logprobs=np.full(len(sampled), say.logprob, dtype=np.float32),
            weight_version=np.full(len(sampled), 7, dtype=np.int32),
            finish=say.finish or finish,
            prompt_tokens=len(ids),
            queued_s=say.queued_s,
            first_token_s=say.queued_s,
            seconds=say.seconds,
        )


type Tool = Callable[[Mapping[str, Any]], Observation | str | BaseException]


@dataclass
class Belt:
    """Tools that are functions; a text is a success, an exception is raised."""

    functions: Mapping[str, Tool]
    name: str = "belt"
    called: list[CallRequest] = field(default_factory=list[CallRequest])
    kept: dict[str, str] = field(default_factory=dict[str, str])
    keep_fails: BaseException | None = None

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        schema = {"type": "object"}
        return tuple(ToolSpec(name=n, description=n, parameters=schema) for n in self.functions)

    async def call(self, request: CallRequest) -> Observation:
        self.called.append(request)
        said = self.functions[request.name](request.arguments)
        if isinstance(said, BaseException):
            raise said
        if isinstance(said, Observation):
            return Observation(**{**_fields(said), "call": request})
        return Observation(call=request, ok=True, text=said, seconds=0.5)

    async def keep(self, name: str, text: str) -> str:
        if self.keep_fails:
            raise self.keep_fails
        self.kept[f"/kept/{name}"] = text
        return f"/kept/{name}"


def _fields(seen: Observation) -> dict[str, Any]:
    return {name: getattr(seen, name) for name in seen.__slots__}


NO_CALL = CallRequest(name="", arguments={})


def seen(text: str, **more: Any) -> Observation:
    """An observation of whatever call it is given for."""
    return Observation(**{"call": NO_CALL, "ok": True, "text": text, "seconds": 0.5, **more})


def call(name: str, **arguments: Any) -> str:
    """A line that calls."""
    return f"CALL {name} {json.dumps(arguments)}"


def echo(arguments: Mapping[str, Any]) -> str:
    return str(arguments.get("text", ""))


TASK = (Message(role="system", content="Work."), Message(role="user", content="Say 42."))


def loop(
    *turns: str | Say | BaseException, tools: Mapping[str, Tool] | None = None, **more: Any
) -> Loop:
    """A loop over these turns; limits, and `Loop`'s own fields, by name."""
    mine = {name: more.pop(name) for name in Limits.__slots__ if name in more}
    evaluation = more.pop("evaluation", False)
    clock = more.pop("clock", lambda: 0.0)
    account = Account(limits=Limits(**mine), evaluation=evaluation, clock=clock)
    return Loop(
        engine=ScriptEngine(turns),
        template=ByteTemplate(),
        parser=LineParser(),
        toolbelt=Belt({"echo": echo} if tools is None else tools),
        account=account,
        **more,
    )


async def played(playing: Loop) -> tuple[Stop, Episode]:
    """Run it to its end; what comes out is fit for the store, also where it raises."""
    stop = Stop.FAULT
    try:
        stop = await playing.run(TASK)
    finally:
        check_episode("here", playing.episode(stop), playing.sampling)
    return stop, playing.episode(stop)
