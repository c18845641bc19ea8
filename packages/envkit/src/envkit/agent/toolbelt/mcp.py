# SPDX-License-Identifier: Apache-2.0
"""The toolbelt ``mcp``: every tool of the trial's servers, under the names they are served by.

Contract: what is expected is there from the start, or the trial ends with `MissingTools`. A tool
that says no is an observation, and whose fault it was is taken from what the server says.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from envkit.agent.mcp_client import Endpoint, Tool, ToolResult
from envkit.agent.toolbelt.box import FILE_S, KEPT, Box
from envkit.agent.toolbelt.connection import Connection
from envkit.agent.toolbelt.listing import check_listed
from envkit.agent.toolbelt.local import unknown_tool
from envkit.agent.types import CallRequest, Observation, ToolSpec
from envkit.deadline import Budgets
from envkit.fault import TaskError

_COMMANDS: Final = "code_execution_server_code_exec"
"""A tool that reads any file of the box; without it only the world's own files can be read."""

KEPT_IN_WORLD: Final = "/filesystem/.tool_results"
"""Taken away when the episode ends: it is no work of the agent's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server of the trial."""

    endpoint: Endpoint
    journals: bool
    """A gateway of envkit: it recognises a call that it has had already by its id."""


class McpToolbelt:
    """Made by `open_mcp`."""

    name = "mcp"

    def __init__(self, by_name: dict[str, tuple[Tool, Connection]], box: Box) -> None:
        self._by_name = by_name
        self._box = box
        self.kept_in_world = False
        """Whether something of ours lies among the world's files."""
        self._specs = tuple(_spec(tool) for tool, _ in by_name.values())

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """All that the servers list."""
        return self._specs

    async def call(self, request: CallRequest) -> Observation:
        """Have its server carry it out; raises as `Connection.call`."""
        if request.name not in self._by_name:
            return unknown_tool(request, self._by_name)
        _, connection = self._by_name[request.name]
        called = await connection.call(request.name, request.arguments, request.call_id)
        result = called.result
        spoiled = not result.ok and result.structured.get("owner") == "server"
        return Observation(
            call=request,
            ok=result.ok,
            text=f"{result.text}{_unseen(result)}",
            seconds=result.seconds,
            code=result.code,
            model_owned=not (spoiled or called.disturbed),
            fields=result.structured,
        )

    async def keep(self, name: str, text: str) -> str:
        """Leave it where a command can read it, or where the servers' own tools can."""
        folder = KEPT if _COMMANDS in self._by_name else KEPT_IN_WORLD
        path = f"{folder}/{name}"
        await self._box.put(path, text.encode("utf-8", "replace"))
        self.kept_in_world = folder == KEPT_IN_WORLD
        return path


@asynccontextmanager
async def open_mcp(
    servers: Sequence[Server], box: Box, budgets: Budgets, expected: Collection[str] = ()
) -> AsyncGenerator[McpToolbelt]:
    """Connect to every server, one after the other, and see that the tools are those expected.

    Raises:
        MissingTools: one that is expected is not listed.
        ExtraTools: one is listed that is not expected.
        TaskError: two servers list a tool of the same name.
        EnvkitError: what `Connection` raises.
    """
    by_name: dict[str, tuple[Tool, Connection]] = {}
    async with AsyncExitStack() as stack:
        for server in servers:
            opening = Connection(server.endpoint, budgets, journals=server.journals)
            connection = await stack.enter_async_context(opening)
            for tool in await connection.list_tools():
                if tool.name in by_name:
                    raise TaskError(f"two servers list the tool {tool.name}; rename one of them")
                by_name[tool.name] = (tool, connection)
        check_listed([tool for tool, _ in by_name.values()], expected)
        belt = McpToolbelt(by_name, box)
        yield belt
        if belt.kept_in_world:
            await box.script('rm -rf -- "$1"', KEPT_IN_WORLD, timeout_s=FILE_S)


def _unseen(result: ToolResult) -> str:
    """What a model that reads text must know of the rest."""
    if not result.hidden:
        return ""
    return f"\n[{result.hidden} of its parts cannot be shown to you: they are no text]"


def _spec(tool: Tool) -> ToolSpec:
    return ToolSpec(name=tool.name, description=tool.description, parameters=tool.input_schema)
