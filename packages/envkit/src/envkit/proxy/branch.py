# SPDX-License-Identifier: Apache-2.0
"""One chain of messages and its token stream.

Contract: the stream is the first request's prompt, then each sample as the engine gave it and what
the chat template writes between a turn and what follows it. A request that failed leaves it where
the same request goes on. Nothing that was sampled is encoded again, and nothing enters that was not
proven to follow.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from envkit.agent.history import Acted, History
from envkit.agent.limits import Account, Clock
from envkit.agent.loaded import Voice
from envkit.agent.repair import Problem
from envkit.agent.types import Engine, Message, Observation, Parsed, Role, Sampled
from envkit.fault import EngineAborted, EngineError, EnvkitError, Fault, Phase, classify
from envkit.proxy.following import not_following
from envkit.proxy.links import answer_link, common
from envkit.proxy.said import said
from envkit.proxy.types import Asked, Call, Link, Mark, NotServed, Reason, Said
from envkit.trajectory.types import Limits, Sampling, Stop

CHANGED: Final[Mapping[Role, Reason]] = {
    "system": "system_changed",
    "user": "history_edited",
    "assistant": "answer_changed",
    "tool": "history_edited",
}
"""Why a request does not go on, by whose message differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mouth:
    """Whom a branch asks, and how it is spoken to."""

    engine: Engine
    voice: Voice
    clock: Clock = time.monotonic

    @property
    def limits(self) -> Limits:
        """There are none but the engine's context: all others are the harness's own."""
        return Limits(
            context_tokens=self.engine.context_tokens,
            turns=0,
            tokens_per_turn=0,
            own_s=0.0,
            tool_result_tokens=0,
            repairs=0,
            nudge_ratio=0.0,
        )


@dataclass(slots=True, eq=False, kw_only=True)
class Branch:
    """Made by `begin`."""

    mouth: Mouth
    row: str
    """Its id in the store."""
    asked: Asked
    """The request that it began with."""
    mark: Mark | None
    account: Account
    started_at: float = field(default_factory=time.time)
    """Unix time."""
    history: History = field(default_factory=History)
    links: list[Link] = field(default_factory=list[Link])
    last: Said | None = None
    """What was answered last; None while an answer is due."""
    answered_at: float = 0.0
    busy: bool = False
    fault: Fault | None = None
    """What the last request failed with; None where it did not."""
    spoiled: bool = False
    """The fault forbids asking again."""
    full: bool = False
    """What followed the last answer did not fit in the context."""
    sent: int = 0
    """Requests since the last answer."""
    rested_at: float | None = None
    """Since when nothing is under way, from the start of the branch."""

    @property
    def sampling(self) -> Sampling:
        """Of all its requests."""
        return self.asked.sampling

    def refuses(self, asked: Asked) -> Mark | None:
        """Why a request cannot be proven to go on from here; None where it can."""
        if asked.tools_digest != self.asked.tools_digest:
            return Mark(code="tools_changed", message="the tools are not those it began with")
        if asked.sampling != self.sampling:
            return Mark(code="sampling_changed", message=f"{asked.sampling} != {self.sampling}")
        if mark := self._differs(asked.links):
            return mark
        if self.spoiled:
            return Mark(code="engine_fault", message=str(self.fault and self.fault.message))
        if self.busy:
            return Mark(code="concurrent", message="another request goes on from the same message")
        if self.last is None:
            return None
        if self.last.lost:
            return Mark(code="call_lost", message=f"the answer before: {self.last.lost}")
        return not_following(self.last.calls, asked.messages[len(self.links) :])

    def _differs(self, links: Sequence[Link]) -> Mark | None:
        place = common(links, self.links)
        if place == len(self.links):
            if (len(links) > place) == (self.last is not None):
                return None
            if self.last is None:
                return Mark(code="other_messages", message="more than was asked and not answered")
        if place == len(links):
            return Mark(code="asked_again", message=f"message {place} was answered already")
        role = self.links[place].role
        return Mark(code=CHANGED[role], message=f"message {place} ({role}) differs")

    async def answer(self, asked: Asked) -> tuple[Said, Sampled]:
        """Go on with a request that `refuses` nothing of.

        Raises:
            EnvkitError: the engine failed; the same request may be sent again, unless `spoiled`.
            NotServed: no room is left in the context.
        """
        self.busy = True
        if self.rested_at is not None:
            self.account.waited(self.account.elapsed_s - self.rested_at)
        try:
            if self.last is not None:
                self._observe(asked)
            sampled = await self._sample(asked)
            return self._answered(sampled), sampled
        except EnvkitError as error:
            self._failed(error)
            raise
        finally:
            self.busy = False
            self.rested_at = self.account.elapsed_s

    def _observe(self, asked: Asked) -> None:
        """What follows the last answer enters the stream, if it fits there."""
        assert self.last is not None, "there is an answer that it follows"
        stream, turn = self.history.stream, len(self.history.turns) - 1
        template = self.mouth.voice.template
        new = asked.messages[len(self.links) :]
        end = template.end_of_turn(stream.last)
        ids = template.observations(new, after=end[-1] if end else stream.last)
        if len(stream) + len(end) + len(ids) >= self.account.limits.context_tokens:
            self.full = True
            raise context_full(len(stream) + len(ids), self.account.limits.context_tokens)
        stream.harness(end, turn)
        waited = self.account.elapsed_s - self.answered_at
        for each in new:
            if each.role == "tool":
                self._acted(each, self.last.calls, waited)
        self.history.observed(ids, {}, "")
        self.links += asked.links[len(self.links) :]
        self.last, self.full = None, False

    def _acted(self, result: Message, calls: Sequence[Call], seconds: float) -> None:
        call = next(each.request for each in calls if each.request.call_id == result.call_id)
        seen = Observation(
            call=call, ok=True, text=result.content, seconds=seconds, model_owned=False
        )
        self.account.used = replace(self.account.used, tool_calls=self.account.used.tool_calls + 1)
        self.history.acted(Acted(observation=seen, started_s=self.answered_at))

    async def _sample(self, asked: Asked) -> Sampled:
        stream, began = self.history.stream, self.account.elapsed_s
        room = self.account.room(len(stream))
        self.sent += 1
        sampled = await self.mouth.engine.sample(
            stream.prompt,
            max_tokens=min(room, asked.max_tokens or room),
            stop_ids=self.mouth.voice.template.stop_ids,
            sampling=self.sampling,
            request_id=f"{self.row}-{len(self.history.turns)}-{self.sent}",
        )
        if sampled.finish == "abort":
            raise EngineAborted("the engine gave the request up")
        tried = replace(sampled, tries=sampled.tries + self.sent - 1)
        self.history.sampled(tried, began)
        self.account.sampled(tried)
        return tried

    def _answered(self, sampled: Sampled) -> Said:
        turn = len(self.history.turns)
        told = said(self.mouth.voice, sampled, self.asked.tools, turn)
        parsed = Parsed(content=told.content, thinking=told.thinking)
        self.history.parsed(parsed, Problem(faults=told.faults) if told.faults else None)
        self.links.append(answer_link(told))
        self.last, self.fault, self.sent = told, None, 0
        self.answered_at = self.account.elapsed_s
        return told

    def _failed(self, error: EnvkitError) -> None:
        self.fault = classify(error, Phase.ACT)
        self.spoiled = isinstance(error, EngineError) and not error.policy.retry

    def stop(self) -> Stop:
        """Why it ended, as far as can be seen from here."""
        if self.full:
            return Stop.CONTEXT
        if self.last is None:
            return Stop.FAULT
        if self.last.finish == "length":
            return Stop.LENGTH
        return Stop.TURN_CAP if self.last.calls else Stop.FINAL


def begin(mouth: Mouth, row: str, asked: Asked, mark: Mark | None) -> Branch:
    """With the prompt of a request.

    Raises:
        NotServed: it does not fit in the context.
        TemplateRefused: the template does not take these messages.
    """
    account = Account(limits=mouth.limits, clock=mouth.clock)
    branch = Branch(mouth=mouth, row=row, asked=asked, mark=mark, account=account)
    ids = mouth.voice.template.prompt(asked.messages, asked.tools)
    if len(ids) >= account.limits.context_tokens:
        raise context_full(len(ids), account.limits.context_tokens)
    branch.history.stream.begin(ids)
    branch.links += asked.links
    return branch


def context_full(tokens: int, most: int) -> NotServed:
    """As clients know it."""
    return NotServed(
        400,
        "context_length_exceeded",
        f"This model's maximum context length is {most} tokens; the messages have {tokens}.",
    )
