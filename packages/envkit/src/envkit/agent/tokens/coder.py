# SPDX-License-Identifier: Apache-2.0
"""A conversation to text to ids: content guarded, rendered, split at what is the template's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from envkit.agent.tokens.guard import Guard
from envkit.agent.tokens.rendering import Rendering
from envkit.agent.tokens.vocabulary import Piece, Vocabulary
from envkit.agent.types import Message, ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """Text of a conversation, its content still guarded."""

    guarded: str
    guard: Guard

    @property
    def text(self) -> str:
        """As the template has it."""
        return self.guard.remove(self.guarded)

    def after(self, sentinel: str) -> Rendered:
        """What stands behind the first place where ``sentinel`` does."""
        at = self.guarded.index(sentinel) + len(sentinel)
        return Rendered(guarded=self.guarded[at:], guard=self.guard)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coder:
    """A template with its tokenizer."""

    rendering: Rendering
    vocabulary: Vocabulary

    def render(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] = (), *, generate: bool
    ) -> Rendered:
        """Text of a conversation, up to where the model samples where it is to ``generate``."""
        plain = [to_template(each) for each in messages]
        schemas = [each.to_openai() for each in tools]
        guard = Guard(self.vocabulary.added, [plain, schemas])
        guarded = self.rendering.render(
            [guard.message(each) for each in plain],
            [guard.tool(each) for each in schemas],
            generate=generate,
        )
        return Rendered(guarded=guarded, guard=guard)

    def pieces(self, rendered: Rendered) -> list[Piece]:
        """Its text and the template's own added tokens, in order."""
        split = self.vocabulary.split(rendered.guarded)
        return [each if isinstance(each, int) else rendered.guard.remove(each) for each in split]


def to_template(message: Message) -> dict[str, Any]:
    """A message as chat templates take it."""
    plain: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.calls:
        plain["tool_calls"] = [
            {
                "id": each.call_id,
                "type": "function",
                "function": {"name": each.name, "arguments": dict(each.arguments)},
            }
            for each in message.calls
        ]
    if message.role == "tool":
        plain |= {"tool_call_id": message.call_id, "name": message.name}
    return plain
