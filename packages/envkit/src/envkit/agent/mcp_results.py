# SPDX-License-Identifier: Apache-2.0
"""Tools as a server lists them and results as it gives them, read from JSON.

Contract: what is read is held to what the client relies on, and no further: a page of tools or a
result of another form raises `NotMcp`, and so does structured content that is not as the tool's
own output schema says. A schema is compiled once a process, since that costs 60 times its use.
"""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import orjson
from jsonschema import SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import (
    validator_for,  # pyright: ignore[reportUnknownVariableType]
)
from mcp.shared.inbound import X_MCP_HEADER_KEY, find_invalid_x_mcp_header, x_mcp_header_map
from referencing import Registry
from referencing.exceptions import Unresolvable

from envkit.agent.mcp_wire import Answer, Message, NotMcp

SCHEMAS_KEPT = 256
"""Compiled output schemas; a server lists tens of tools, often with one schema for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that a server offers."""

    name: str
    description: str = ""
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None = None
    headers: Mapping[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])
    """Arguments that a call repeats in its headers, by their path; see ``x-mcp-header``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool answered, for the agent to read."""

    ok: bool
    text: str
    """The text parts, joined by newlines."""
    structured: Mapping[str, object]
    """The envelope; empty where the server sends none."""
    seconds: float
    code: str = ""
    """The envelope's stable code, or ``jsonrpc-32602`` where the protocol itself refused."""
    call_id: str = ""
    hidden: int = 0
    """Parts that are no text: pictures, sounds, links."""


def tools_of(page: Answer) -> tuple[tuple[Tool, ...], str]:
    """The tools on a page of ``tools/list``, and the cursor of the next, if there is one.

    A tool that asks for its arguments in headers as no client can give them is left out, as the
    protocol wants.
    """
    raw, cursor = page.result.get("tools"), page.result.get("nextCursor") or ""
    if not isinstance(raw, list) or not isinstance(cursor, str):
        raise NotMcp("its list of tools is none")
    in_headers = X_MCP_HEADER_KEY.encode() in page.body
    return tuple(_tools(cast(list[object], raw), in_headers=in_headers)), cursor


def _tools(raw: list[object], *, in_headers: bool) -> Iterator[Tool]:
    for each in raw:
        match each:
            case {"name": str(name), "inputSchema": dict()}:
                described = cast(Message, each)
                schema: Message = described["inputSchema"]
            case _:
                raise NotMcp("a tool without name or schema")
        output_schema: object = described.get("outputSchema")
        if not (output_schema is None or isinstance(output_schema, dict)):
            raise NotMcp(f"{name} has an output schema that is none")
        if in_headers and find_invalid_x_mcp_header(schema):
            continue
        yield Tool(
            name=name,
            description=str(described.get("description") or ""),
            input_schema=schema,
            output_schema=cast("Message | None", output_schema),
            headers=x_mcp_header_map(schema) if in_headers else {},
        )


def result_of(result: Message, tool: Tool | None, seconds: float, call_id: str) -> ToolResult:
    """A call's result; ``tool`` as it was listed, if it was."""
    content, failed = result.get("content"), result.get("isError", False)
    if result.get("resultType", "complete") != "complete":
        raise NotMcp(f"it answers {str(result['resultType'])[:40]!r}, which nobody offered")
    if not isinstance(content, list) or not isinstance(failed, bool):
        raise NotMcp("its result has no content")
    if not failed and tool is not None and tool.output_schema is not None:
        _check(tool, result)
    structured: object = result.get("structuredContent")
    envelope = cast(Message, structured) if isinstance(structured, dict) else {}
    texts = list(_texts(cast(list[object], content)))
    return ToolResult(
        ok=not failed and envelope.get("ok", True) is not False,
        text="\n".join(texts),
        structured=envelope,
        seconds=seconds,
        code=str(envelope.get("code", "")),
        call_id=call_id,
        hidden=len(cast(list[object], content)) - len(texts),
    )


def _texts(content: list[object]) -> Iterator[str]:
    for part in content:
        match part:
            case {"type": "text", "text": str(text)}:
                yield text
            case {"type": str(kind)} if kind != "text":
                pass
            case _:
                raise NotMcp("a part of its result has no type or no text")


def _check(tool: Tool, result: Message) -> None:
    """Hold structured content to the tool's schema; raises NotMcp."""
    if "structuredContent" not in result:
        raise NotMcp(f"{tool.name} has an output schema, but answered no structured content")
    schema = orjson.dumps(tool.output_schema, option=orjson.OPT_SORT_KEYS)
    try:
        error = next(_validator(schema).iter_errors(result["structuredContent"]), None)
    except (SchemaError, Unresolvable, RecursionError) as wrong:
        raise NotMcp(f"{tool.name} has no valid output schema: {wrong}") from wrong
    if error is not None:
        where = error.json_path
        raise NotMcp(f"{tool.name} answered structured content against its schema: {where}")


@functools.lru_cache(maxsize=SCHEMAS_KEPT)
def _validator(schema: bytes) -> Validator:
    """Compiled, with nothing fetched for a reference; raises SchemaError."""
    parsed = orjson.loads(schema)
    kind = validator_for(parsed)
    kind.check_schema(parsed)
    return kind(parsed, registry=Registry())  # pyright: ignore[reportUnknownArgumentType]
