# SPDX-License-Identifier: Apache-2.0
"""Calls said as each format has them, for transcripts that no model sampled.

Contract: what is said here reads back as the same calls; what a format cannot say is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from envkit.agent.parse.raw import Broken, Format, NoCall, RawCall
from envkit.agent.parse.reader import Reader
from envkit.agent.parse.turn import format_named
from envkit.agent.types import CallRequest
from envkit.fault import HarnessError


def say(
    name: str,
    calls: Sequence[CallRequest] = (),
    *,
    content: str = "",
    thinking: str = "",
    opened: bool = False,
) -> str:
    """A turn in the format ``name``, without its stop token.

    ``opened`` where the prompt has opened the block of thinking.

    Raises:
        HarnessError: the format cannot say it, or there is no such format.
    """
    format = format_named(name)
    said = _SAY[name](calls) if calls else ""
    _check(format, calls, said)
    opening, closing = format.think
    thought = f"{thinking}\n{closing}\n\n" if opened else f"{opening}\n{thinking}\n{closing}\n\n"
    joint = "\n" if content and said else ""
    return f"{thought if thinking or opened else ''}{content}{joint}{said}"


def _check(format: Format, calls: Sequence[CallRequest], said: str) -> None:
    reader, at, read = Reader(said), 0, list[RawCall | Broken]()
    try:
        while at < len(said):
            found, at = format.read(reader, reader.skip(at))
            read += found
    except (Broken, NoCall) as error:
        raise HarnessError(f"{format.name} cannot say these arguments: {error}") from error
    wanted = [(each.name, dict(each.arguments)) for each in calls]
    if list(map(_said, read)) != wanted and list(map(_said, read)) != _as_text(wanted):
        raise HarnessError(
            f"{format.name} cannot say these arguments: they would be read as others"
        )


def _said(read: RawCall | Broken) -> tuple[str, dict[str, Any]]:
    return ("", {}) if isinstance(read, Broken) else (read.name, dict(read.arguments))


def _as_text(calls: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    return [(name, {key: _text(each) for key, each in said.items()}) for name, said in calls]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _hermes(calls: Sequence[CallRequest]) -> str:
    said = [_json({"name": each.name, "arguments": dict(each.arguments)}) for each in calls]
    return "\n".join(f"<tool_call>\n{each}\n</tool_call>" for each in said)


def _qwen3_xml(calls: Sequence[CallRequest]) -> str:
    def one(call: CallRequest) -> str:
        parameters = "".join(
            f"<parameter={key}>\n{_text(value)}\n</parameter>\n"
            for key, value in call.arguments.items()
        )
        return f"<tool_call>\n<function={call.name}>\n{parameters}</function>\n</tool_call>"

    return "\n".join(map(one, calls))


def _glm(calls: Sequence[CallRequest]) -> str:
    def one(call: CallRequest) -> str:
        arguments = "".join(
            f"<arg_key>{key}</arg_key>\n<arg_value>{_text(value)}</arg_value>\n"
            for key, value in call.arguments.items()
        )
        return f"<tool_call>{call.name}\n{arguments}</tool_call>"

    return "\n".join(map(one, calls))


def _llama3(calls: Sequence[CallRequest]) -> str:
    return "; ".join(
        _json({"name": each.name, "parameters": dict(each.arguments)}) for each in calls
    )


def _mistral(calls: Sequence[CallRequest]) -> str:
    said = [{"name": each.name, "arguments": dict(each.arguments)} for each in calls]
    return f"[TOOL_CALLS]{_json(said)}"


_SAY: Final[Mapping[str, Callable[[Sequence[CallRequest]], str]]] = MappingProxyType(
    {
        "hermes": _hermes,
        "qwen3_xml": _qwen3_xml,
        "glm": _glm,
        "llama3_json": _llama3,
        "mistral": _mistral,
    }
)
