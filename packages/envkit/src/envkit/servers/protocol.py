# SPDX-License-Identifier: Apache-2.0
"""The desk as an MCP server: exact schemas, exact results, call ids from `_meta`.

Uses the protocol library's low-level server, so that what is advertised and returned is what
`arguments` and `contract` say, with nothing added in between.
"""

from functools import cache
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from envkit import __version__
from envkit.servers.arguments import input_schema
from envkit.servers.contract import OUTPUT_SCHEMA, Reply
from envkit.servers.desk import Desk
from envkit.servers.tool import Effect, Tool, full_name

CALL_ID_META = "envkit/call_id"


def mcp_server(desk: Desk) -> Server[Any]:
    """A server that lists and calls the desk's tools."""
    listed = [advertise(tool) for tool in desk.tools.values()]

    async def list_tools(
        _ctx: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(
        _ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        meta: dict[str, Any] = dict(params.meta or {})
        call_id = meta.get(CALL_ID_META)
        return to_result(await desk.call(params.name, params.arguments, str(call_id or "")))

    server = Server(
        "envkit",
        version=__version__,
        get_tool_input_schema=_no_argument_in_headers,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    server.middleware.clear()  # spans, which nothing collects where a gateway lives
    return server


def _no_argument_in_headers(_name: str) -> None:
    """No tool asks for an argument in a header, so no call need be searched for one."""


@cache
def advertise(tool: Tool) -> types.Tool:
    """The tool as `tools/list` shows it. Made once: before a fork, when the process was warmed."""
    return types.Tool(
        name=full_name(tool),
        description=tool.about,
        input_schema=input_schema(tool.arguments),
        output_schema=OUTPUT_SCHEMA,
        annotations=types.ToolAnnotations(
            read_only_hint=tool.effect is Effect.READ,
            destructive_hint=tool.effect is Effect.CHANGE,
            idempotent_hint=tool.effect is Effect.READ,
            open_world_hint=False,
        ),
    )


def to_result(reply: Reply) -> types.CallToolResult:
    """The reply as an MCP result."""
    content: list[types.ContentBlock] = [
        types.TextContent(type="text", text=text) for text in reply.texts
    ]
    content += [
        types.ImageContent(type="image", data=image.data, mime_type=image.media_type)
        for image in reply.images
    ]
    return types.CallToolResult(
        content=content, structured_content=dict(reply.envelope), is_error=reply.is_error
    )
