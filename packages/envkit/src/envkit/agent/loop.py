# SPDX-License-Identifier: Apache-2.0
"""One episode: prompt, then sample, parse, act, observe until something ends it.

Contract: whatever happens, `Loop.episode` gives what was seen until then. A call that cannot be
read is answered with what is wrong with it, within the repairs, and never ends the episode in
silence; those beside it that can be read are carried out. Calls of one turn run one after the
other, as they stand: what a server holds may depend on it. What the infrastructure fails at is
raised, and no observation is made of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from envkit.agent.history import Acted, History
from envkit.agent.journal import Diary, NoDiary
from envkit.agent.limits import Account
from envkit.agent.repair import FINAL_ANSWER, Problem, problem_of, read
from envkit.agent.show import Answers
from envkit.agent.types import (
    CallRequest,
    Engine,
    Message,
    Observation,
    Parsed,
    Parser,
    Sampled,
    Template,
    Toolbelt,
)
from envkit.fault import EngineError, HarnessError, ModelFault
from envkit.trajectory.types import Episode, Sampling, Stop


async def _at_once(_calls: int) -> float:
    return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """What whoever runs a loop wants to know, and to hold up."""

    acted: Callable[[Acted], None] = lambda _: None
    """A call came back."""
    waits: Callable[[], None] = lambda: None
    """The episode waits for its engine now."""
    turn: Callable[[int], Awaitable[float]] = _at_once
    """Wait until this machine has a turn for a call, told how many were made; seconds waited."""


@dataclass(slots=True, kw_only=True)
class Loop:
    """The parts of one episode."""

    engine: Engine
    template: Template
    parser: Parser
    toolbelt: Toolbelt
    account: Account
    sampling: Sampling = field(default_factory=Sampling)
    name: str = "episode"
    """Begins the ids of its requests: unique among the episodes that share an engine."""
    hooks: Hooks = Hooks()
    diary: Diary = field(default_factory=NoDiary)
    history: History = field(default_factory=History)

    async def run(self, messages: Sequence[Message]) -> Stop:
        """From the prompt to what ends the episode.

        Raises:
            EnvkitError: the infrastructure failed, or the prompt leaves no room in the context.
        """
        self._begin(messages)
        stop = None
        while stop is None:
            stop = self.account.may_sample(len(self.history.stream)) or await self._turn()
        return stop

    def episode(self, stop: Stop) -> Episode:
        """What there is, and why there is no more."""
        return self.history.episode(stop, self.account)

    def _begin(self, messages: Sequence[Message]) -> None:
        stream = self.history.stream
        stream.begin(self.template.prompt(messages, self.toolbelt.tools))
        if self.account.room(len(stream)) < 1:
            most = self.account.limits.context_tokens
            raise HarnessError(f"the prompt has {len(stream)} tokens, the context takes {most}")
        self.diary.begun(stream.prompt.ids, self.sampling)

    async def _turn(self) -> Stop | None:
        length = len(self.history.stream)
        sampled = await self._sample(length)
        parsed, problem = self._parse(sampled)
        if stop := self._ending(length, sampled, parsed, problem):
            return stop
        stop = await self._act(parsed.calls) or self.account.after_turn()
        return stop or await self._observe(problem)

    async def _sample(self, length: int) -> Sampled:
        self.hooks.waits()
        began, turn = self.account.elapsed_s, len(self.history.turns)
        sampled = await self.engine.sample(
            self.history.stream.prompt,
            max_tokens=self.account.sample_tokens(length),
            stop_ids=self.template.stop_ids,
            sampling=self.sampling,
            request_id=f"{self.name}-{turn}",
        )
        if sampled.finish == "abort":
            raise EngineError(f"turn {turn}: the engine gave the request up")
        self.history.sampled(sampled, began)
        self.account.sampled(sampled)
        self.diary.sampled(turn, sampled)
        return sampled

    def _parse(self, sampled: Sampled) -> tuple[Parsed, Problem | None]:
        ids = sampled.token_ids.tolist()
        said = ids[:-1] if ids[-1] in self.template.stop_ids else ids
        text = self.template.decode(said)
        parsed = read(self.parser, text, self.toolbelt.tools, sampled)
        problem = problem_of(parsed, len(self.history.turns))
        self.history.parsed(parsed, problem)
        return parsed, problem

    def _ending(
        self, asked: int, sampled: Sampled, parsed: Parsed, problem: Problem | None
    ) -> Stop | None:
        if sampled.finish == "length" and self.account.ends_context(asked, len(sampled.token_ids)):
            return Stop.CONTEXT
        if problem:
            return None if self.account.repair() else Stop.LENGTH
        if parsed.calls:
            return None
        self.history.final_answer = parsed.content
        return Stop.FINAL

    async def _act(self, calls: Sequence[CallRequest]) -> Stop | None:
        """Carry them out; an answer needs no leave, as one that is a text needs none."""
        turn = len(self.history.turns) - 1
        for number, call in enumerate(calls, 1):
            stop = None if call.name == FINAL_ANSWER else self.account.may_call()
            if stop:
                return stop
            call = replace(call, call_id=f"call-{turn}-{number}")
            if call.name != FINAL_ANSWER:
                self.diary.intends(turn, call)
            seen = await self._carry_out(call)
            if seen.final is not None:
                self.history.final_answer = seen.final
                return Stop.FINAL
        return None

    async def _carry_out(self, call: CallRequest) -> Observation:
        waited = await self.hooks.turn(self.account.used.tool_calls)
        self.account.waited(waited)
        began = self.account.calls()
        try:
            seen = await self.toolbelt.call(call)
        except ModelFault as fault:
            seconds = self.account.elapsed_s - began
            code, text = type(fault).__name__, str(fault)
            seen = Observation(call=call, ok=False, text=text, seconds=seconds, code=code)
        self.account.called(seen)
        acted = Acted(observation=seen, started_s=began, waited_s=waited)
        self.history.acted(acted)
        self.hooks.acted(acted)
        return seen

    async def _observe(self, problem: Problem | None) -> Stop | None:
        """What follows the turn: its missing end, its calls' results, what the loop has to say."""
        stream, turn = self.history.stream, len(self.history.turns) - 1
        stream.harness(self.template.end_of_turn(stream.last), turn)
        seen = [acted.observation for acted in self.history.turns[-1].acted]
        answers = Answers(self.template, self.toolbelt.keep, seen, problem.text if problem else "")
        most = self.account.observation_tokens(len(stream))
        ids = await answers.encode(stream.last, self.account.limits.tool_result_tokens, most)
        ids = self._nudged(answers, ids, turn)
        if len(ids) >= self.account.room(len(stream)):
            return Stop.CONTEXT
        self.diary.observed(turn, self.history.observed(ids, answers.cut_tokens, answers.told))
        return None

    def _nudged(self, answers: Answers, ids: list[int], turn: int) -> list[int]:
        """The same with the nudge, where that is due and fits."""
        stream = self.history.stream
        if not self.account.nudge_is_due(len(stream) + len(ids)):
            return ids
        nudged = answers.nudged(stream.last)
        if len(nudged) >= self.account.room(len(stream)):
            return ids
        answers.say_nudge()
        self.account.nudged(turn)
        return nudged
