# SPDX-License-Identifier: Apache-2.0
"""Answers as OpenAI's chat completions have them, whole and as a stream of events.

Contract: a stream comes at once when the turn is whole, for calls can only be read then; its parts
put together are the whole answer.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import orjson

from envkit.proxy.types import Answered, Asked, Call


def whole(answered: Answered, asked: Asked, name: str) -> dict[str, Any]:
    """One object; ``name`` is what the client calls the model."""
    said = answered.said
    message: dict[str, Any] = {
        "role": "assistant",
        "content": said.content if said.content or not said.calls else None,
        "refusal": None,
    }
    if said.thinking:
        message["reasoning_content"] = said.thinking
    if said.calls:
        message["tool_calls"] = [_call(each) for each in said.calls]
    choice: dict[str, Any] = {
        "index": 0,
        "message": message,
        "logprobs": _logprobs(answered) if asked.logprobs else None,
        "finish_reason": said.finish,
    }
    body = {
        **_head(answered, name, "chat.completion"),
        "choices": [choice],
        "usage": usage(answered),
    }
    if asked.token_ids:
        choice["token_ids"] = answered.sampled.token_ids.tolist()
        body["prompt_token_ids"] = list(answered.prompt_ids)
    return body


def events(answered: Answered, asked: Asked, name: str) -> bytes:
    """The same as server-sent events, the last of them ``[DONE]``."""
    body = whole(answered, asked, name)
    choice = body["choices"][0]
    head = {**_head(answered, name, "chat.completion.chunk")}
    if asked.token_ids:
        head["prompt_token_ids"] = body["prompt_token_ids"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    message = choice["message"]
    deltas += [{key: message[key]} for key in ("reasoning_content", "content") if message.get(key)]
    calls = message.get("tool_calls", [])
    deltas += [{"tool_calls": [{"index": n, **call}]} for n, call in enumerate(calls)]
    chunks = [{**head, "choices": [_delta(each)]} for each in deltas]
    last = {**_delta({}), "finish_reason": choice["finish_reason"], "logprobs": choice["logprobs"]}
    if asked.token_ids:
        last["token_ids"] = choice["token_ids"]
    chunks.append({**head, "choices": [last]})
    if asked.include_usage:
        chunks.append({**head, "choices": [], "usage": body["usage"]})
    return b"".join(b"data: %s\n\n" % orjson.dumps(each) for each in chunks) + b"data: [DONE]\n\n"


def usage(answered: Answered) -> Mapping[str, int]:
    """Tokens of this answer."""
    prompt, sampled = answered.sampled.prompt_tokens, len(answered.sampled.token_ids)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": sampled,
        "total_tokens": prompt + sampled,
    }


def _head(answered: Answered, name: str, kind: str) -> dict[str, Any]:
    turn = answered.sampled.prompt_tokens
    return {
        "id": f"chatcmpl-{answered.row}-{turn}",
        "object": kind,
        "created": int(time.time()),
        "model": name,
    }


def _delta(delta: Mapping[str, Any]) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}


def _call(call: Call) -> dict[str, Any]:
    return {
        "id": call.request.call_id,
        "type": "function",
        "function": {"name": call.request.name, "arguments": call.arguments},
    }


def _logprobs(answered: Answered) -> dict[str, Any]:
    pairs = zip(answered.pieces, answered.sampled.logprobs.tolist(), strict=True)
    content = [
        {"token": text, "logprob": logprob, "bytes": list(text.encode()), "top_logprobs": []}
        for text, logprob in pairs
    ]
    return {"content": content, "refusal": None}
