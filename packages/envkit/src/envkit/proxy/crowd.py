# SPDX-License-Identifier: Apache-2.0
"""All conversations that are open, and where a request belongs among them.

Contract: a request that names its conversation belongs there. One that does not belongs to the
conversation it is proven to go on from, else to the one that has answers in common with it, else to
a new one. There are at most `most`; a request that would open another is told to come later.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from envkit.proxy.branch import Branch, Mouth
from envkit.proxy.conversation import Conversation, unknown_history
from envkit.proxy.links import common
from envkit.proxy.types import Asked, Mark, NotServed

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
"""Of a conversation; ``~`` is left for further streams of it."""


@dataclass(slots=True, eq=False, kw_only=True)
class Crowd:
    """Of one server."""

    mouth: Mouth
    most: int
    ended: Callable[[str], bool]
    """Whether a conversation of this name has rows already."""
    open: dict[str, Conversation] = field(default_factory=dict[str, Conversation])

    def place(self, asked: Asked, name: str = "") -> tuple[Conversation, Branch]:
        """The conversation and the branch of a request.

        Raises:
            NotServed: there is no room for it, it has ended, or its name cannot be.
            TemplateRefused: the template does not take these messages.
        """
        home, mark = self._named(name) if name else self._unnamed(asked)
        home.touched = self.mouth.clock()
        branch = home.branch_for(asked, mark)
        self.open[home.name] = home
        return home, branch

    def idle(self, seconds: float) -> list[Conversation]:
        """Those that nothing was asked of for so long."""
        before = self.mouth.clock() - seconds
        return [
            each
            for each in self.open.values()
            if each.touched <= before and not each.busy and not each.ending
        ]

    def _named(self, name: str) -> tuple[Conversation, Mark | None]:
        if not NAME.fullmatch(name):
            told = f"{name!r} names no conversation: letters, digits, '.', '_', '-', at most 128"
            raise NotServed(400, "invalid_request", told)
        home = self.open.get(name)
        if self.ended(name) or (home and home.ending):
            raise NotServed(409, "ended", f"conversation {name} has ended: take another name")
        return home or self._new(name, keyed=True), None

    def _unnamed(self, asked: Asked) -> tuple[Conversation, Mark | None]:
        homes = [each for each in self.open.values() if not each.keyed and not each.ending]
        going_on = [each for each in homes if each.going_on(asked)]
        if going_on and _same_tokens(going_on, asked):
            return going_on[0], None
        if going_on:
            told = f"{len(going_on)} conversations said the same in other tokens"
            return self._new(), Mark(code="ambiguous", message=told)
        near = max(homes, key=lambda each: _answers(each, asked), default=None)
        if near is not None and _answers(near, asked):
            return near, None
        return self._new(), unknown_history(asked.messages)

    def _new(self, name: str = "", *, keyed: bool = False) -> Conversation:
        if len(self.open) >= self.most:
            raise NotServed(
                429, "too_many_conversations", f"{self.most} conversations are open: end some"
            )
        name = name or f"c-{secrets.token_hex(8)}"
        return Conversation(name=name, keyed=keyed, mouth=self.mouth, touched=self.mouth.clock())


def _same_tokens(homes: Sequence[Conversation], asked: Asked) -> bool:
    found = [home.going_on(asked) for home in homes]
    streams = [list(each.history.stream.prompt.ids) for each in found if each is not None]
    return all(each == streams[0] for each in streams)


def _answers(home: Conversation, asked: Asked) -> int:
    """How many of its answers a request has in common with it, from the first on."""
    near = home.nearest(asked)
    shared = asked.links[: common(asked.links, near.links)]
    return sum(each.role == "assistant" for each in shared)
