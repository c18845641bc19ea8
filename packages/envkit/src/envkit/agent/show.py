# SPDX-License-Identifier: Apache-2.0
"""The answers to one turn of the model, as the tokens that follow it.

Contract: every call has its answer, cut so that together with what the template puts around them
they fit the room they are given; an error is shown as one. What is cut is first kept whole where
the agent can read it. Encoding what the loop itself has to say belongs to the same difference.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from envkit.agent.observe import Result, Shown, share
from envkit.agent.types import Message, Observation, Template
from envkit.fault import ModelFault

NUDGE: Final = (
    "Little room is left in your context. Finish the most important work and give your answer."
)
type Keep = Callable[[str, str], Awaitable[str]]


class Answers:
    """To one turn."""

    def __init__(
        self, template: Template, keep: Keep, seen: Sequence[Observation], told: str
    ) -> None:
        self.told = told
        """What the loop says, empty for nothing."""
        self._template = template
        self._keep = keep
        self._seen = seen
        self._results = [Result(_said(each), template) for each in seen]
        self._shown: list[Shown] = []
        self._paths: dict[str, str] = {}

    @property
    def cut_tokens(self) -> dict[str, int]:
        """By call: how many tokens of its result are not shown."""
        pairs = zip(self._seen, self._shown, strict=True)
        return {seen.call.call_id: shown.cut_tokens for seen, shown in pairs}

    async def encode(self, after: int, most_each: int, most: int) -> list[int]:
        """Ids of at most ``most``, unless what must be said alone takes more."""
        room = most
        while True:
            limit = share([len(result) for result in self._results], most_each, room)
            self._shown = [await self._cut(*pair, limit) for pair in self._pairs()]
            ids = self._ids(after, self.told)
            over = len(ids) - most
            if over <= 0 or room <= 0:
                return ids
            room = min(room, self._shown_tokens()) - over

    def nudged(self, after: int) -> list[int]:
        """The same with the nudge; `say_nudge` makes it so."""
        return self._ids(after, self._with_nudge())

    def say_nudge(self) -> None:
        """The nudge belongs to what is said."""
        self.told = self._with_nudge()

    def _with_nudge(self) -> str:
        return f"{self.told}\n\n{NUDGE}" if self.told else NUDGE

    def _pairs(self) -> zip[tuple[Observation, Result]]:
        return zip(self._seen, self._results, strict=True)

    def _shown_tokens(self) -> int:
        return sum(len(self._template.encode(shown.text)) for shown in self._shown)

    async def _cut(self, seen: Observation, result: Result, limit: int) -> Shown:
        if len(result) <= limit:
            return result.shown(limit)
        call_id = seen.call.call_id
        if call_id not in self._paths:
            self._paths[call_id] = await self._kept(f"{call_id}.txt", seen.text)
        return result.shown(limit, self._paths[call_id])

    async def _kept(self, name: str, text: str) -> str:
        """Where the whole is; nowhere if the model has broken what it would lie in."""
        try:
            return await self._keep(name, text)
        except ModelFault:
            return ""

    def _ids(self, after: int, told: str) -> list[int]:
        pairs = zip(self._seen, self._shown, strict=True)
        messages = [_message(seen, shown) for seen, shown in pairs]
        if told:
            messages.append(Message(role="user", content=told))
        return self._template.observations(messages, after=after)


def _said(seen: Observation) -> str:
    return seen.text if seen.ok else f"Error: {seen.text}"


def _message(seen: Observation, shown: Shown) -> Message:
    call = seen.call
    return Message(role="tool", content=shown.text, call_id=call.call_id, name=call.name)
