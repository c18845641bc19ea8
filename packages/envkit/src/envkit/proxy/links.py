# SPDX-License-Identifier: Apache-2.0
"""Conversations compared, message by message, by digests: no text is kept for it.

Contract: two messages are the same where role, text, name, call ids, names of calls and the text of
their arguments are, byte for byte. No content and empty content are the same, as clients turn one
into the other. Reasoning is compared where a client sends it back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import orjson

from envkit.agent.types import Message
from envkit.proxy.types import Link, Said


def link(message: Message, arguments: Sequence[str] = (), thought: str | None = None) -> Link:
    """Of a message; ``arguments`` are the texts of its calls' arguments."""
    calls = [
        [each.call_id, each.name, text] for each, text in zip(message.calls, arguments, strict=True)
    ]
    parts = [message.role, message.content, message.call_id, message.name, calls]
    if message.role == "tool":
        parts[3] = ""  # the call's, which a client need not say again
    return Link(
        role=message.role,
        digest=_digest(orjson.dumps(parts)),
        thought=None if thought is None else _digest(thought.encode()),
    )


def answer_link(said: Said) -> Link:
    """Of what was answered."""
    calls = tuple(each.request for each in said.calls)
    message = Message(role="assistant", content=said.content, calls=calls)
    return link(message, [each.arguments for each in said.calls], said.thinking)


def same(asked: Link, known: Link) -> bool:
    """Whether a message that a client sends is one that is known."""
    thought = asked.thought in (None, known.thought) or known.thought is None
    return asked.digest == known.digest and thought


def common(asked: Sequence[Link], known: Sequence[Link]) -> int:
    """How many messages are the same, from the first on."""
    pairs = zip(asked, known, strict=False)
    return next(
        (n for n, (one, other) in enumerate(pairs) if not same(one, other)),
        min(len(asked), len(known)),
    )


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
