# SPDX-License-Identifier: Apache-2.0
"""Tools that are carried out here, beside those of servers.

Contract: a tool returns what it says, or raises `Refused` with what is wrong and what to do; both
are observations. What else it raises is a fault.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from envkit.agent.types import CallRequest, Observation, ToolSpec


class Refused(Exception):
    """A tool says no."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a tool says."""

    text: str
    code: str = ""
    final: str | None = None
    """The answer of the episode."""


type Work = Callable[[Mapping[str, Any]], Awaitable[Said]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTool:
    """One tool."""

    spec: ToolSpec
    work: Work


async def carry_out(tool: LocalTool, request: CallRequest) -> Observation:
    """One call; raises what is neither said nor refused."""
    clock = asyncio.get_running_loop().time
    began = clock()
    try:
        said = await tool.work(request.arguments)
        seen = Observation(
            call=request, ok=True, text=said.text, seconds=0, code=said.code, final=said.final
        )
    except Refused as error:
        seen = Observation(call=request, ok=False, text=error.text, seconds=0, code=error.code)
    return replace(seen, seconds=clock() - began)


def unknown_tool(request: CallRequest, known: Mapping[str, object]) -> Observation:
    """A call of a tool that is not there."""
    text = f"there is no tool {request.name}; there are {', '.join(sorted(known)) or 'none'}"
    return Observation(call=request, ok=False, text=text, seconds=0.0, code="unknown_tool")


def schema(*required: str, **properties: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON Schema of arguments."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }
