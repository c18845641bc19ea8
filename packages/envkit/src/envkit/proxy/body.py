# SPDX-License-Identifier: Apache-2.0
"""From the JSON of a request for a chat completion to what is asked for.

Contract: everything that shapes the answer is carried out or refused by name (HTTP 400). What a
client only notes beside it (`NOTES`) is passed over.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final, cast

import orjson

from envkit.agent.types import CallRequest, Message, Role, ToolSpec
from envkit.proxy.links import link
from envkit.proxy.types import Asked, Link, NotServed
from envkit.trajectory.types import Sampling

NOTES: Final = frozenset(
    "metadata prompt_cache_key prompt_cache_retention safety_identifier service_tier store user"
    " timeout".split()
)
"""Fields that change nothing of an answer."""
SHAPING: Final = {
    "temperature": float,
    "top_p": float,
    "top_k": int,
    "min_p": float,
    "presence_penalty": float,
    "frequency_penalty": float,
    "repetition_penalty": float,
    "seed": int,
}
_ONLY: Final[Mapping[str, tuple[Any, ...]]] = {
    "n": (1,),
    "logit_bias": ({},),
    "stop": ([], ""),
    "top_logprobs": (0,),
    "tool_choice": ("auto",),
    "parallel_tool_calls": (True,),
    "response_format": ({"type": "text"},),
    "echo": (False,),
    "best_of": (1,),
}
"""Fields of which one value alone is carried out."""
_READ: Final = frozenset(
    "messages tools model max_tokens max_completion_tokens stream stream_options logprobs"
    " return_token_ids".split()
)
_ROLES: Final[Mapping[str, Role]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}


def read_body(data: bytes, defaults: Sampling) -> Asked:
    """What is asked for; ``defaults`` are of parameters that the client leaves out.

    Raises:
        NotServed: it is no such request, or asks for what is not carried out.
    """
    body = _object(data)
    _check_fields(body)
    tools = _tools(body.get("tools") or [])
    messages, links = _messages(body.get("messages"))
    return Asked(
        messages=messages,
        links=links,
        tools=tools,
        tools_digest=orjson.dumps([each.to_openai() for each in tools], option=_SORTED),
        sampling=_sampling(body, defaults),
        model=str(body.get("model") or ""),
        max_tokens=_max_tokens(body),
        stream=bool(body.get("stream")),
        include_usage=bool(_fields(body.get("stream_options")).get("include_usage")),
        logprobs=bool(body.get("logprobs")),
        token_ids=bool(body.get("return_token_ids")),
    )


_SORTED: Final = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS


def _object(data: bytes) -> dict[str, Any]:
    try:
        body: Any = orjson.loads(data)
    except ValueError as error:
        raise _bad(f"the request is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise _bad("the request is no JSON object")
    return cast("dict[str, Any]", body)


def _check_fields(body: Mapping[str, Any]) -> None:
    for name, value in body.items():
        if value is None or name in _READ or name in NOTES or name in SHAPING:
            continue
        if name not in _ONLY:
            raise _bad(f"{name!r} is not carried out here: leave it out", "unsupported_parameter")
        if value not in _ONLY[name]:
            shown = json.dumps(_ONLY[name][0])
            raise _bad(f"{name!r} can only be {shown} here", "unsupported_parameter")


def _sampling(body: Mapping[str, Any], defaults: Sampling) -> Sampling:
    fields = {name: getattr(defaults, name) for name in Sampling.__slots__}
    for name, kind in SHAPING.items():
        value = body.get(name)
        if value is None:
            continue
        if not _is_number(value) or kind(value) != value:
            raise _bad(f"{name!r} must be a number, not {value!r}")
        fields[name] = kind(value)
    if fields["top_k"] == -1:  # all, as vLLM has it
        fields["top_k"] = 0
    if fields["temperature"] < 0 or not 0 < fields["top_p"] <= 1 or fields["top_k"] < 0:
        raise _bad("temperature must be at least 0, top_p in (0, 1], top_k at least 0")
    return Sampling(**fields)


def _is_number(value: Any) -> bool:
    return type(value) is int or (type(value) is float and math.isfinite(value))


def _max_tokens(body: Mapping[str, Any]) -> int | None:
    name = "max_tokens" if body.get("max_completion_tokens") is None else "max_completion_tokens"
    value = body.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise _bad(f"{name!r} must be a whole number above 0, not {value!r}")
    return value


def _tools(given: Any) -> tuple[ToolSpec, ...]:
    return tuple(_tool(each) for each in _list(given, "tools"))


def _tool(given: Any) -> ToolSpec:
    try:
        function = given["function"]
        return ToolSpec(
            name=_text(function["name"], "a tool's name"),
            description=_text(function.get("description") or "", "a tool's description"),
            parameters=dict(function.get("parameters") or {"type": "object", "properties": {}}),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _bad("a tool must be {type: function, function: {name, parameters}}") from error


def _messages(given: Any) -> tuple[tuple[Message, ...], tuple[Link, ...]]:
    if not isinstance(given, list) or not given:
        raise _bad("'messages' must be a list with a message")
    messages: list[Message] = []
    links: list[Link] = []
    names: dict[str, str] = {}
    for each in cast("list[Any]", given):
        message, arguments, thought = _message(each, names)
        names |= {call.call_id: call.name for call in message.calls}
        messages.append(message)
        links.append(link(message, arguments, thought))
    if messages[-1].role == "assistant":
        raise _bad("the last message is the assistant's: what is begun is not gone on with here")
    return tuple(messages), tuple(links)


def _message(given: Any, names: Mapping[str, str]) -> tuple[Message, list[str], str | None]:
    fields = _fields(given)
    role = _ROLES.get(str(fields.get("role")))
    if role is None:
        raise _bad("a message has no role that is known: system, user, assistant, tool")
    content = _content(fields.get("content"))
    if role == "tool":
        call_id = _text(fields.get("tool_call_id") or "", "tool_call_id")
        name = names.get(call_id, str(fields.get("name") or ""))
        return Message(role=role, content=content, call_id=call_id, name=name), [], None
    if role != "assistant":
        return Message(role=role, content=content), [], None
    calls = [_call(each) for each in _list(fields.get("tool_calls") or [], "tool_calls")]
    message = Message(role=role, content=content, calls=tuple(call for call, _ in calls))
    thought = fields.get("reasoning_content", fields.get("reasoning"))
    text = None if thought is None else _text(thought, "reasoning_content")
    return message, [arguments for _, arguments in calls], text


def _call(given: Any) -> tuple[CallRequest, str]:
    try:
        function = given["function"]
        text = function["arguments"]
        arguments: Any = orjson.loads(text)
        name, call_id = str(function["name"]), str(given["id"])
    except (KeyError, TypeError, ValueError) as error:
        raise _bad("a tool call must have an id, a name and arguments as JSON text") from error
    if not isinstance(arguments, dict):
        raise _bad("the arguments of a tool call must be a JSON object")
    wanted = cast("dict[str, Any]", arguments)
    return CallRequest(name=name, arguments=wanted, call_id=call_id), text


def _fields(given: Any) -> dict[str, Any]:
    """Of an object; none of anything else."""
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {}


def _list(given: Any, what: str) -> list[Any]:
    if not isinstance(given, list):
        raise _bad(f"{what!r} must be a list")
    return cast("list[Any]", given)


def _content(given: Any) -> str:
    if isinstance(given, list):
        return "\n".join(_part(each) for each in cast("list[Any]", given))
    return _text("" if given is None else given, "content")


def _part(given: Any) -> str:
    part = _fields(given)
    if part.get("type") != "text":
        raise _bad("only text can be sent", "unsupported_content")
    return _text(part.get("text"), "text")


def _text(given: Any, what: str) -> str:
    if not isinstance(given, str):
        raise _bad(f"{what} must be text, not {given!r:.60}")
    return given


def _bad(message: str, code: str = "invalid_request") -> NotServed:
    return NotServed(400, code, message)
