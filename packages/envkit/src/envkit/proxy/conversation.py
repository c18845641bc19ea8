# SPDX-License-Identifier: Apache-2.0
"""The branches of one harness's run: one, where all of it could be proven.

Contract: a request goes on with the branch it is proven to follow; any other begins a branch of its
own, marked with what stands against it. A harness that summarises, or has others work for it, makes
several: each is true by itself, and what the run was worth cannot be told of one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from envkit.agent.types import Message
from envkit.proxy.branch import Branch, Mouth, begin
from envkit.proxy.links import common
from envkit.proxy.types import Asked, Mark, NotServed

BRANCHES_MOST: Final = 64
"""Of one conversation: a harness that edits its history at every turn would fill the memory."""


@dataclass(slots=True, eq=False, kw_only=True)
class Conversation:
    """Of one harness's run."""

    name: str
    keyed: bool
    """The client named it; else its requests are told by their messages."""
    mouth: Mouth
    touched: float
    """When a request of it began or ended, by the clock of the mouth."""
    branches: list[Branch] = field(default_factory=list[Branch])
    ending: bool = False

    @property
    def busy(self) -> bool:
        """Whether an answer is under way."""
        return any(each.busy for each in self.branches)

    @property
    def latest(self) -> Branch:
        """The branch that was answered last; where none was, the one that began last."""
        return max(
            self.branches,
            key=lambda each: (bool(each.history.turns), each.started_at + each.answered_at),
        )

    def going_on(self, asked: Asked) -> Branch | None:
        """The branch that a request is proven to follow, if there is one."""
        return next((each for each in self.branches if each.refuses(asked) is None), None)

    def nearest(self, asked: Asked) -> Branch:
        """The branch that has most messages in common with a request; the youngest of several."""
        return max(reversed(self.branches), key=lambda each: common(asked.links, each.links))

    def branch_for(self, asked: Asked, mark: Mark | None = None) -> Branch:
        """Where a request belongs; ``mark`` is what is known against it already.

        Raises:
            NotServed: there are too many branches, or the prompt does not fit.
            TemplateRefused: the template does not take these messages.
        """
        branch = None if mark else self.going_on(asked)
        return branch or self._new(asked, mark or self._mark(asked))

    def _mark(self, asked: Asked) -> Mark | None:
        if self.branches:
            return self.nearest(asked).refuses(asked)
        return unknown_history(asked.messages)

    def _new(self, asked: Asked, mark: Mark | None) -> Branch:
        number = len(self.branches) + 1
        if number > BRANCHES_MOST:
            raise NotServed(
                400,
                "too_many_streams",
                f"{self.name} has {BRANCHES_MOST} streams that do not follow each other: end it",
            )
        row = self.name if number == 1 else f"{self.name}~{number}"
        branch = begin(self.mouth, row, asked, mark)
        self.branches.append(branch)
        return branch


def unknown_history(messages: Sequence[Message]) -> Mark | None:
    """Of a first request that says what an assistant said before."""
    count = sum(each.role == "assistant" for each in messages)
    if not count:
        return None
    told = f"{count} messages of an assistant that were not answered here"
    return Mark(code="history_unknown", message=told)
