# SPDX-License-Identifier: Apache-2.0
"""Conversations as OpenAI chat messages: out of trajectories, and read from anywhere.

Contract: a `Conversation` is text. It has no ids, no logprobs and no mask, because nothing about
messages proves what an engine sampled; so nothing that was read here can be trained on, and there
is no way from it to a `Trajectory`. Reading and writing it again keeps every text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import orjson

from envkit.trajectory.errors import TrajectoryError
from envkit.trajectory.text import (
    CallSeen,
    CallText,
    Decode,
    Hear,
    Turn,
    parts,
    plain_text,
    turns,
)
from envkit.trajectory.types import Episode, Identity, Kind, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSaid:
    """A call in a message of an assistant."""

    call_id: str
    name: str
    arguments: str
    """JSON, as it was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatMessage:
    """One message."""

    role: str
    content: str
    thinking: str = ""
    calls: tuple[CallSaid, ...] = ()
    call_id: str = ""
    """Of a tool's answer: the call it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Text that somebody and a model said to each other; no tokens are known of it."""

    messages: tuple[ChatMessage, ...]


def conversation(
    episode: Episode,
    decode: Decode,
    *,
    hear: Hear = plain_text,
    texts: Mapping[str, CallText] | None = None,
    prompt: Sequence[tuple[str, str]] = (),
) -> Conversation:
    """What was said in an episode; the arguments are those of `envkit.trajectory.atif.to_atif`."""
    first = parts(episode, decode)[:1]
    given = prompt or [("user", part.text) for part in first]
    messages = [ChatMessage(role=role, content=text) for role, text in given]
    for turn in turns(episode, decode, hear=hear, texts=texts):
        messages += _of_turn(turn)
    return Conversation(messages=tuple(messages))


def to_messages(conversation: Conversation) -> list[dict[str, Any]]:
    """The messages as OpenAI has them."""
    return [_message(each) for each in conversation.messages]


def to_document(
    conversation: Conversation, identity: Identity, outcome: Outcome | None = None
) -> dict[str, Any]:
    """A document of messages, with which rollout it was and what it was worth beside them."""
    return {
        "messages": to_messages(conversation),
        "trajectory_id": identity.trajectory_id,
        "task": identity.task,
        "model": identity.engine.model,
        "reward": outcome.reward if outcome else None,
        "reward_valid": outcome.reward_valid if outcome else False,
    }


def from_messages(document: object) -> Conversation:
    """Read messages, or a document that has some.

    Raises:
        TrajectoryError: they are no list of messages whose contents are text.
    """
    found = document.get("messages") if isinstance(document, Mapping) else document  # type: ignore[union-attr]
    if not isinstance(found, list) or not found:
        raise TrajectoryError("messages: are not a list with entries")
    items = cast("list[object]", found)
    return Conversation(messages=tuple(_read(f"messages[{i}]", m) for i, m in enumerate(items)))


# --- writing --------------------------------------------------------------------------------------


def _of_turn(turn: Turn) -> list[ChatMessage]:
    calls = tuple(_said(each) for each in turn.calls)
    said = turn.said
    spoken = ChatMessage(
        role="assistant", content=said.content, thinking=said.thinking, calls=calls
    )
    answers = [
        ChatMessage(role="tool", content=each.result or "", call_id=each.record.call_id)
        for each in turn.calls
    ]
    told = [
        ChatMessage(role="user", content=part.text)
        for part in turn.after
        if part.segment.kind is Kind.HARNESS
    ]
    return [spoken, *answers, *told]


def _said(call: CallSeen) -> CallSaid:
    text = orjson.dumps(dict(call.arguments or {})).decode()
    return CallSaid(call_id=call.record.call_id, name=call.record.name, arguments=text)


def _message(message: ChatMessage) -> dict[str, Any]:
    data: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.thinking:
        data["reasoning_content"] = message.thinking
    if message.calls:
        data["tool_calls"] = [
            {
                "id": each.call_id,
                "type": "function",
                "function": {"name": each.name, "arguments": each.arguments},
            }
            for each in message.calls
        ]
    return data | ({"tool_call_id": message.call_id} if message.call_id else {})


# --- reading --------------------------------------------------------------------------------------


def _read(where: str, item: object) -> ChatMessage:
    data = _object(where, item)
    role = data.get("role")
    if not isinstance(role, str):
        raise TrajectoryError(f"{where}: has no role")
    calls: object = data.get("tool_calls") or []
    if not isinstance(calls, list):
        raise TrajectoryError(f"{where}.tool_calls: is no list")
    numbered = enumerate(cast("list[object]", calls))
    return ChatMessage(
        role=role,
        content=_text(f"{where}.content", data.get("content")),
        thinking=_text(f"{where}.reasoning_content", data.get("reasoning_content")),
        calls=tuple(_call(f"{where}.tool_calls[{number}]", each) for number, each in numbered),
        call_id=str(data.get("tool_call_id") or ""),
    )


def _call(where: str, item: object) -> CallSaid:
    data = _object(where, item)
    function = _object(f"{where}.function", data.get("function"))
    arguments = function.get("arguments", "")
    if not isinstance(arguments, str):
        arguments = orjson.dumps(arguments).decode()
    return CallSaid(
        call_id=str(data.get("id") or ""), name=str(function.get("name") or ""), arguments=arguments
    )


def _text(where: str, content: object) -> str:
    """A content that is text, in one piece or in parts."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise TrajectoryError(f"{where}: is neither text nor a list of parts")
    texts: list[str] = []
    for number, item in enumerate(cast("list[object]", content)):
        text = _object(f"{where}[{number}]", item).get("text")
        if not isinstance(text, str):
            raise TrajectoryError(f"{where}[{number}]: is no text; other parts are not read")
        texts.append(text)
    return "".join(texts)


def _object(where: str, item: object) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise TrajectoryError(f"{where}: is no object")
    return cast("dict[str, Any]", item)
