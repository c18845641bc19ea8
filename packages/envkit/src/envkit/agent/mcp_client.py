# SPDX-License-Identifier: Apache-2.0
"""One MCP server over streamable HTTP, for callers who must come back on time.

Every request has a hard deadline and runs in its caller's own task: one that is given up closes its
connection, and the server sees that nobody waits. The first lost connection ends the client:
whatever is asked later raises `ServerDisconnected`. A request is sent once, whatever comes of it.

Errors: `ServerStartFailed`, `ServerDisconnected`, `TokenExpired`, `ServerGarbage`, `ServerError`
and `DeadlineExceeded`. A tool that says no is a `ToolResult` with ``ok=False``: that is the
agent's to read.

The protocol is spoken here and not by the SDK's client, whose work was half of a call's.
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from mcp.shared.inbound import mcp_param_headers

from envkit.agent.mcp_faults import FAILURES, is_refusal, server_fault
from envkit.agent.mcp_http import HttpLink
from envkit.agent.mcp_results import Tool, ToolResult, result_of, tools_of
from envkit.agent.mcp_session import McpSession
from envkit.agent.mcp_wire import McpWire, Message, RpcError
from envkit.deadline import DEFAULT_BUDGETS, Budgets, DeadlineExceeded, deadline
from envkit.fault import EnvkitError, ServerDisconnected, ServerGarbage, ServerStartFailed
from envkit.sandbox.ledger import ledger

__all__ = ["CALL_ID", "Endpoint", "Tool", "ToolClient", "ToolResult"]

CALL_ID = "envkit/call_id"
"""Key of the call id in a request's ``_meta``; the gateway journals by it."""


PAGES = 100
"""Of a list of tools; a server that says there are more goes in circles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a server answers."""

    url: str
    """``http://127.0.0.1:8000/mcp/``"""
    token: str | None = field(default=None, repr=False)
    """Bearer token; kept out of logs."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Further headers, such as a task's own."""


class ToolClient:
    """A connected client. Made by `ToolClient.open`, which also closes it."""

    def __init__(self, endpoint: Endpoint, budgets: Budgets) -> None:
        bearer = {"Authorization": f"Bearer {endpoint.token}"} if endpoint.token else {}
        self._link = HttpLink(endpoint.url, {**endpoint.headers, **bearer})
        self._session = McpSession(McpWire(self._link))
        self._budgets = budgets
        self._tools: dict[str, Tool] = {}
        self._connecting = True
        self._lost: ServerDisconnected | None = None

    @classmethod
    @asynccontextmanager
    async def open(
        cls, endpoint: Endpoint, budgets: Budgets = DEFAULT_BUDGETS
    ) -> AsyncGenerator["ToolClient"]:
        """Connect, hand out the client, close it: each within its budget.

        Closing never raises: a server that will not say goodbye takes no result away.
        """
        try:
            client = cls(endpoint, budgets)
        except ValueError as error:
            raise ServerStartFailed(str(error)) from error
        try:
            seconds = budgets.mcp_connect_s
            await client._ask("mcp_connect", seconds, client._session.connect(seconds))
            client._connecting = False
            yield client
        finally:
            await client._close()

    async def list_tools(self) -> tuple[Tool, ...]:
        """Every tool the server lists, over all pages."""
        listed: list[Tool] = []
        cursor = ""
        for _ in range(PAGES):
            page, following = await self._ask(
                "mcp_list", self._budgets.mcp_list_s, self._page(cursor)
            )
            listed.extend(page)
            if not following or following == cursor:
                self._tools = {tool.name: tool for tool in listed}
                return tuple(listed)
            cursor = following
        endless = ServerGarbage(f"{self._link.url} lists tools on more than {PAGES} pages")
        ledger().note(endless)
        raise endless

    async def call(
        self, name: str, arguments: Mapping[str, object], *, call_id: str = ""
    ) -> ToolResult:
        """Call a tool once. With a ``call_id`` a gateway of envkit runs it at most once.

        What was listed is what a result is held to: structured content by the tool's own schema.
        """
        work = self._called(name, arguments, call_id)
        return await self._ask("mcp_call", self._budgets.mcp_call_s, work)

    async def _page(self, cursor: str) -> tuple[tuple[Tool, ...], str]:
        params: Message = {"cursor": cursor} if cursor else {}
        return tools_of(await self._session.ask("tools/list", params))

    async def _called(self, name: str, arguments: Mapping[str, object], call_id: str) -> ToolResult:
        clock = asyncio.get_running_loop().time
        started, tool = clock(), self._tools.get(name)
        params: Message = {"name": name, "arguments": dict(arguments)}
        if call_id:
            params["_meta"] = {CALL_ID: call_id}
        headers = mcp_param_headers(tool.headers, arguments) if tool and tool.headers else None
        try:
            answer = await self._session.ask("tools/call", params, headers)
        except RpcError as error:
            if not is_refusal(error):
                raise
            return _refused(error, clock() - started, call_id)
        return result_of(answer.result, tool, clock() - started, call_id)

    async def _ask[T](self, op: str, seconds: float, work: Coroutine[object, object, T]) -> T:
        """Do it on time, and enter in the ledger what goes wrong: an agent may go on without."""
        try:
            return await self._asked(op, seconds, work)
        except EnvkitError as error:
            ledger().note(error)
            raise

    async def _asked[T](self, op: str, seconds: float, work: Coroutine[object, object, T]) -> T:
        if self._lost is not None:
            work.close()
            raise ServerDisconnected(f"{op} not sent: {self._lost}")
        async with deadline(op, seconds):
            try:
                return await work
            except FAILURES as error:
                fault = server_fault(error, self._link.url, connecting=self._connecting)
                if isinstance(fault, ServerDisconnected):
                    self._lost = self._lost or fault
                raise fault from error

    async def _close(self) -> None:
        with suppress(DeadlineExceeded, *FAILURES):
            async with deadline("mcp_close", self._budgets.mcp_close_s):
                await self._session.leave()
        self._link.close()


def _refused(error: RpcError, seconds: float, call_id: str) -> ToolResult:
    return ToolResult(
        ok=False,
        text=error.message,
        structured={},
        seconds=seconds,
        code=f"jsonrpc{error.code}",
        call_id=call_id,
    )
