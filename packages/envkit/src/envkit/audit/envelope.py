# SPDX-License-Identifier: Apache-2.0
"""Unwrap a tool result and decide, from typed evidence, whether the call failed.

A result arrives as MCP text blocks, as JSON, as JSON escaped in a text block, or as plain text. A
tool that fails often answers with a block that looks like any other: the failure is a field of the
JSON inside. So every layer is opened and its *fields* are asked. Words never are, except where the
whole result is an error message: it starts as one, and it is neither a document a reader returned
nor an echo of the call's own arguments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import orjson

from envkit.audit import family
from envkit.audit.cause import cause, exit_code
from envkit.audit.shape import integer, is_array, is_object, mapping, sequence, string
from envkit.audit.types import Channel, Failure, Outcome

DEPTH: Final = 6
"""Layers that are opened; deeper ones are taken as text."""

_FLAGS: Final = ("isError", "is_error", "tool_result_is_error", "tool_use_is_error")
_EXITS: Final = ("exit_code", "exitCode", "returncode", "return_code")
_WORDS: Final = ("error", "message", "did", "detail", "output", "stderr")
_SHELL_KEYS: Final = frozenset({"output", "stdout", "stderr", "content", *_EXITS, *_FLAGS})
_WRAPPERS: Final = frozenset({"result", "output", "text", "content"})

_HARNESS_ERROR: Final = re.compile(
    r"(?:Internal error|Invalid params|Unknown tool|MCP error|Input validation error"
    r"|Error (?:calling|executing) tool)\b[^\n]{0,80}:"
)
_ERROR: Final = re.compile(
    r"(?:Error|ERROR|Tool error|Validation error|[A-Z]\w{2,40}(?:Error|Exception)):\s"
)
_BRACKET: Final = re.compile(
    r"\[(?:not found|permission denied|access denied|not a directory|is a directory)\b[^\]\n]*\]\Z"
)
_BROKEN_JSON: Final = re.compile(r'\{\s*"(?:success|ok)"\s*:\s*false\b')
_RETURNCODE: Final = re.compile(r"\A<returncode>(-?\d{1,10})</returncode>")


def read_result(
    content: object,
    *,
    tool: str = "",
    arguments: object = None,
    flags: Mapping[str, Any] = MappingProxyType({}),
) -> Outcome:
    """The text of a result and, when the tool says so, why the call failed.

    ``flags`` are typed facts recorded beside the result (``is_error``, ``exit_code``).
    """
    text = _text(content)
    failure = _declared({**flags, "content": content}) if flags else None
    failure = failure or _failure(content, tool, DEPTH)
    if (
        failure
        and failure.channel is Channel.MESSAGE
        and (_fine(flags) or _echoes(text, arguments))
    ):
        failure = None
    return Outcome(text=text, failure=failure)


def _fine(data: Mapping[str, Any]) -> bool:
    """Whether a flag says that nothing failed: then words say nothing."""
    return data.get("ok") is True or any(data.get(flag) is False for flag in _FLAGS)


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    texts = _texts(sequence(content))
    return "\n".join(texts) if texts else _dump(content) if content else ""


def _texts(blocks: list[Any]) -> list[str]:
    """The texts of MCP text blocks."""
    objects = [mapping(block) for block in blocks]
    return [string(block.get("text")) for block in objects if block.get("type") == "text"]


def _failure(value: object, tool: str, depth: int) -> Failure | None:
    """Open one layer: text, blocks or object."""
    if depth == 0:
        return None
    if isinstance(value, str):
        inner = _inner(value, tool)
        return _message(value, tool) if inner is None else _failure(inner, tool, depth - 1)
    if is_array(value):
        # The first text says what happened; further ones are detail.
        return next((_failure(text, tool, depth - 1) for text in _texts(value)), None)
    data = mapping(value)
    return _declared(data) or _nested(data, tool, depth - 1)


def _inner(text: str, tool: str) -> Any:
    """The envelope that ``text`` is, or None: what a reader or a shell prints is no envelope."""
    if family.is_reader(tool) or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    printed = family.is_shell(tool) and is_object(value) and _SHELL_KEYS.isdisjoint(value)
    return None if printed else value


def _nested(data: dict[str, Any], tool: str, depth: int) -> Failure | None:
    """What an MCP result or a bare wrapper holds inside."""
    structured = mapping(data.get("structuredContent"))
    if structured and (failure := _declared(structured)):
        return failure
    if isinstance(data.get("content"), list):
        failure = _failure(data["content"], tool, depth)
        words = failure is not None and failure.channel is Channel.MESSAGE
        return None if words and _fine(data) else failure
    if len(data) == 1 and (key := next(iter(data))) in _WRAPPERS:
        return _failure(data[key], tool, depth)
    return None


def _declared(data: Mapping[str, Any]) -> Failure | None:
    """The failure that an object's own fields declare."""
    channel, code = _channel(data)
    if channel is None:
        return None
    text = _words(data)
    code = exit_code(text) if code is None else code
    return Failure(channel=channel, text=text, cause=cause(text, code), exit_code=code)


def _channel(data: Mapping[str, Any]) -> tuple[Channel | None, int | None]:
    code = next((n for key in _EXITS if (n := integer(data.get(key))) is not None), None)
    error = data.get("error")
    if any(data.get(flag) is True for flag in _FLAGS):
        return Channel.FLAG, code
    if data.get("success") is False or data.get("ok") is False:
        return Channel.SUCCESS, code
    if error is True or (isinstance(error, str | dict | list) and error):
        return Channel.ERROR, code
    if data.get("status") == "error" and any(data.get(key) for key in ("message", "detail")):
        return Channel.STATUS, code
    return (Channel.EXIT if code else None), code


def _words(data: Mapping[str, Any]) -> str:
    """The tool's own words about its failure."""
    for key in _WORDS:
        value = data.get(key)
        if isinstance(value, str) and value.strip():
            return value
        if key == "error" and mapping(value):
            return string(mapping(value).get("message")) or _dump(value)
    texts = _texts(sequence(data.get("content")))
    return "\n".join(texts) or string(data.get("content")) or _dump(dict(data))


def _message(text: str, tool: str) -> Failure | None:
    """A plain text that is an error message as a whole, or ends in an exit code."""
    body = text.strip()
    if _HARNESS_ERROR.match(body) or _BRACKET.match(body):
        return _said(body)
    if _BROKEN_JSON.match(body) and not family.is_reader(tool) and _inner(body, "") is None:
        return _said(body)
    if family.is_shell(tool):
        return _exited(body)
    one_line = len(body) <= 500 and "\n" not in body
    if _ERROR.match(body) and (one_line or not family.is_reader(tool)):
        return _said(body)
    return None


def _said(body: str) -> Failure:
    return Failure(channel=Channel.MESSAGE, text=body, cause=body)


def _exited(body: str) -> Failure | None:
    head = _RETURNCODE.match(body)
    code = int(head[1]) if head else exit_code(body)
    if not code:
        return None
    return Failure(channel=Channel.EXIT, text=body, cause=cause(body, code), exit_code=code)


def _echoes(text: str, arguments: object) -> bool:
    """Whether a result only gives one of the call's own arguments back."""
    head = text.strip()[:200]
    return any(
        isinstance(value, str) and value.strip().startswith(head)
        for value in mapping(arguments).values()
    )


def _dump(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        return "(nested too deeply to show)"
