# SPDX-License-Identifier: Apache-2.0
"""From a sample to what the client is answered.

Contract: text is the model's own, but for its stop token, its thinking (``reasoning_content``) and
the calls that could be read. Where no call could be read the text is whole, so that the client sees
what went wrong; of a turn that was cut off no call is told. Without tools nothing is looked for but
thinking. What is wrong with a turn is on its record by the parser's own codes.
"""

from __future__ import annotations

import json
import secrets
import string
from collections.abc import Sequence
from typing import Final

from envkit.agent.loaded import Voice
from envkit.agent.parse import FORMATS, cut_off
from envkit.agent.types import CallRequest, Parsed, Sampled, ToolSpec, Unreadable
from envkit.proxy.types import Call, FinishReason, Said
from envkit.trajectory.types import ParseFault

_ID_CHARACTERS: Final = string.ascii_letters + string.digits


def said(voice: Voice, sampled: Sampled, tools: Sequence[ToolSpec], turn: int) -> Said:
    """What turn ``turn`` says."""
    text = _text(voice, sampled)
    thinking, content = _thought(voice, text)
    cut = sampled.finish == "length"
    if not tools:
        return Said(
            content=content, thinking=thinking, calls=(), finish="length" if cut else "stop"
        )
    parsed = voice.parser.parse(text, tools)
    broken = (cut_off(len(sampled.token_ids)),) if cut else parsed.unreadable
    calls = () if cut else tuple(_call(each) for each in parsed.calls)
    if calls or not (cut or broken):
        thinking, content = parsed.thinking, parsed.content
    return Said(
        content=content,
        thinking=thinking,
        calls=calls,
        finish=_finish(cut, parsed, calls),
        faults=tuple(_fault(each, turn) for each in dict.fromkeys(broken)),
        lost="; ".join(each.code for each in broken) if calls else "",
    )


def _finish(cut: bool, parsed: Parsed, calls: Sequence[Call]) -> FinishReason:
    if cut:
        return "length"
    return "tool_calls" if calls else "stop"


def _text(voice: Voice, sampled: Sampled) -> str:
    ids: list[int] = sampled.token_ids.tolist()
    spoken = ids[:-1] if ids[-1] in voice.template.stop_ids else ids
    return _clean(voice.template.decode(spoken))


def _clean(text: str) -> str:
    """Text that JSON and files can hold."""
    return text.encode("utf-8", "replace").decode()


def _thought(voice: Voice, text: str) -> tuple[str, str]:
    """Thinking that a turn begins with, and what stands behind it, as it stands."""
    opening, closing = FORMATS[voice.template.parser_name].think
    began = text.lstrip()
    if not voice.template.opens_thinking and not began.startswith(opening):
        return "", text
    thinking, closed, content = began.removeprefix(opening).partition(closing)
    return thinking.strip(), content.lstrip("\n") if closed else ""


def _call(call: CallRequest) -> Call:
    """With an id of nine characters, as the strictest templates want them."""
    name = "".join(secrets.choice(_ID_CHARACTERS) for _ in range(9))
    arguments = _clean(json.dumps(dict(call.arguments), ensure_ascii=False))
    request = CallRequest(name=call.name, arguments=call.arguments, call_id=name)
    return Call(request=request, arguments=arguments)


def _fault(unreadable: Unreadable, turn: int) -> ParseFault:
    return ParseFault(turn=turn, code=unreadable.code, message=_clean(unreadable.message))
