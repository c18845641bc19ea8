# SPDX-License-Identifier: Apache-2.0
"""Conversations in this process: a byte a token, turns and a clock that a test writes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, override

import orjson

from envkit.agent.loaded import Voice
from envkit.agent.types import Sampled
from envkit.proxy.body import read_body
from envkit.proxy.branch import Mouth
from envkit.proxy.crowd import Crowd
from envkit.proxy.types import Asked
from envkit.trajectory.types import Sampling

from ..agent.small import ByteTemplate, LineParser, ScriptEngine


class Template(ByteTemplate):
    """With what a proxy looks at beside the protocol."""

    parser_name = "hermes"
    opens_thinking = False


class PausingEngine(ScriptEngine):
    """Lets others go on before it answers."""

    @override
    async def sample(self, *prompt: Any, **more: Any) -> Sampled:
        await asyncio.sleep(0)
        return await super().sample(*prompt, **more)


@dataclass
class Clock:
    """Stands still until it is set."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def crowd(*turns: Any, most: int = 8, clock: Clock | None = None) -> Crowd:
    """Of conversations with an engine that says these turns; ``old`` has ended."""
    template: Any = Template()
    speaks = Voice(template=template, parser=LineParser())
    mouth = Mouth(engine=PausingEngine(turns), voice=speaks, clock=clock or Clock())
    return Crowd(mouth=mouth, most=most, ended=lambda name: name == "old")


def asked(*messages: tuple[str, str], **more: Any) -> Asked:
    """A request with these roles and texts."""
    said = [{"role": role, "content": content} for role, content in messages]
    return read_body(orjson.dumps({"messages": said, **more}), Sampling())


async def answer(among: Crowd, request: Asked, name: str = "") -> tuple[str, str | None]:
    """Name of the conversation, and the mark of the stream."""
    home, branch = among.place(request, name)
    await branch.answer(request)
    return home.name, branch.mark and branch.mark.code
