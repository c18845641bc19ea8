# SPDX-License-Identifier: Apache-2.0
"""One MCP server over streamable HTTP, for callers who must come back on time.

The SDK raises ``CancelledError`` in the task that entered its client when the server dies, so one
supervisor task owns connect → close and no caller ever stands inside the SDK's scopes. Every
request runs in a task of its own and is waited for with a hard deadline. The first lost connection
ends the client: whatever waits and whatever is asked later raises `ServerDisconnected`.

Errors: `ServerStartFailed`, `ServerDisconnected`, `ServerGarbage` and `DeadlineExceeded`, never the
SDK's own. A tool that says no is a `ToolResult` with ``ok=False``: that is the agent's to read.
"""

import asyncio
import contextvars
import functools
import ssl
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ListToolsResult, RequestParamsMeta, TextContent, Tool

from envkit.agent.mcp_faults import TRACE, HttpTrace, TracedTransport, is_refusal, server_fault
from envkit.deadline import DEFAULT_BUDGETS, Budgets, DeadlineExceeded, abandon
from envkit.fault import EnvkitError, ServerDisconnected, ServerError
from envkit.sandbox.ledger import ledger

CALL_ID = "envkit/call_id"
"""Key of the call id in a request's ``_meta``; the gateway journals by it."""

_MAX_EVENT_BYTES = 32 << 20
"""Bytes of one answer on an event stream: a rendered page in base64 passes the SDK's own bound of
1 MiB, which would end the call; a server gone mad must still not fill the memory."""

type _Request[T] = Callable[[Client, HttpTrace], Coroutine[object, object, T]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a server answers."""

    url: str
    """``http://127.0.0.1:8000/mcp/``"""
    token: str | None = field(default=None, repr=False)
    """Bearer token; kept out of logs."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Further headers, such as a task's own."""


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


class ToolClient:
    """A connected client. Made by `ToolClient.open`, which also closes it."""

    def __init__(self, endpoint: Endpoint, budgets: Budgets) -> None:
        self._endpoint = endpoint
        self._budgets = budgets
        self._trace = HttpTrace()
        self._connected: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._supervisor = _start(self._supervise(), "mcp supervisor", self._trace)
        self._lost: ServerError | None = None

    @classmethod
    @asynccontextmanager
    async def open(
        cls, endpoint: Endpoint, budgets: Budgets = DEFAULT_BUDGETS
    ) -> AsyncGenerator["ToolClient"]:
        """Connect, hand out the client, close it: each within its budget.

        Closing never raises: a server that will not say goodbye takes no result away.
        """
        client = cls(endpoint, budgets)
        try:
            await client._connect()
            yield client
        finally:
            await client._close()

    async def list_tools(self) -> tuple[Tool, ...]:
        """Every tool the server lists, over all pages."""
        tools: list[Tool] = []
        cursor: str | None = None
        while True:
            page = await self._list_page(cursor)
            tools.extend(page.tools)
            if not page.next_cursor or page.next_cursor == cursor:
                return tuple(tools)
            cursor = page.next_cursor

    async def call(
        self, name: str, arguments: Mapping[str, object], *, call_id: str = ""
    ) -> ToolResult:
        """Call a tool once. With a ``call_id`` a gateway of envkit runs it at most once."""
        started = asyncio.get_running_loop().time()
        meta: RequestParamsMeta | None = {CALL_ID: call_id} if call_id else None

        async def request(client: Client, trace: HttpTrace) -> CallToolResult | MCPError:
            try:
                return await client.call_tool(name, dict(arguments), meta=meta)
            except MCPError as error:
                if is_refusal(error, trace):
                    return error
                raise

        answer = await self._ask("mcp_call", self._budgets.mcp_call_s, request)
        seconds = asyncio.get_running_loop().time() - started
        return _read(answer, seconds, call_id)

    async def _list_page(self, cursor: str | None) -> ListToolsResult:
        async def request(client: Client, _: HttpTrace) -> ListToolsResult:
            return await client.list_tools(cursor=cursor, cache_mode="bypass")

        return await self._ask("mcp_list", self._budgets.mcp_list_s, request)

    async def _supervise(self) -> None:
        """Own the SDK's client from connect to close; ends when closed or the server is lost."""
        token = self._endpoint.token
        bearer = {"Authorization": f"Bearer {token}"} if token else {}
        async with httpx2.AsyncClient(
            headers={**self._endpoint.headers, **bearer},
            timeout=None,  # each request has a hard deadline of its own
            transport=TracedTransport(verify=_authorities()),
            trust_env=False,  # a proxy of the host has no business between a trial and its server
        ) as http:
            transport = streamable_http_client(
                self._endpoint.url, http_client=http, max_sse_event_size=_MAX_EVENT_BYTES
            )
            async with Client(transport, cache=None) as client:
                self._connected.set_result(client)
                await self._closing.wait()

    async def _connect(self) -> None:
        try:
            await self._reach()
        except EnvkitError as error:
            ledger().note(error)
            raise

    async def _reach(self) -> None:
        waits = {self._connected, self._supervisor}
        seconds = self._budgets.mcp_connect_s
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if self._connected.done():
            return
        if not self._supervisor.done():
            raise DeadlineExceeded("mcp_connect", seconds)
        raise self._why_lost(connecting=True)

    async def _ask[T](self, op: str, seconds: float, request: _Request[T]) -> T:
        """Ask, and enter in the ledger what goes wrong: an agent may go on without its tools."""
        try:
            return await self._asked(op, seconds, request)
        except EnvkitError as error:
            ledger().note(error)
            raise

    async def _asked[T](self, op: str, seconds: float, request: _Request[T]) -> T:
        """Run one request in its own task, until it answers, the server is lost or time is up."""
        if self._lost is not None or self._supervisor.done():
            raise ServerDisconnected(f"{op} not sent: {self._why_lost()}")
        trace = HttpTrace()
        task = _start(request(self._connected.result(), trace), op, trace)
        waits: set[asyncio.Task[T] | asyncio.Task[None]] = {task, self._supervisor}
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            abandon(op, task)
            raise
        if task.done():
            return self._answer(op, seconds, task, trace)
        abandon(op, task)
        if self._supervisor.done():
            raise self._why_lost()
        raise DeadlineExceeded(op, seconds)

    def _answer[T](self, op: str, seconds: float, task: asyncio.Task[T], trace: HttpTrace) -> T:
        try:
            return task.result()
        except asyncio.CancelledError as error:
            raise self._lose(ServerDisconnected(f"{self._endpoint.url} is gone")) from error
        except TimeoutError as error:
            raise DeadlineExceeded(op, seconds) from error
        except Exception as error:
            raise self._lose(server_fault(error, trace, self._endpoint.url)) from error

    def _lose(self, fault: ServerError) -> ServerError:
        """The first lost connection ends the client; an answer that makes no sense does not."""
        if isinstance(fault, ServerDisconnected):
            self._lost = self._lost or fault
        return fault

    def _why_lost(self, *, connecting: bool = False) -> ServerError:
        if self._lost is None:
            error = None if self._supervisor.cancelled() else self._supervisor.exception()
            url = self._endpoint.url
            self._lost = server_fault(error, self._trace, url, connecting=connecting)
            self._lost.__cause__ = error
        return self._lost

    async def _close(self) -> None:
        self._closing.set()
        if not self._connected.done():
            self._supervisor.cancel()
        try:
            await asyncio.wait({self._supervisor}, timeout=self._budgets.mcp_close_s)
        finally:
            abandon("mcp_close", self._supervisor)


@functools.cache
def _authorities() -> ssl.SSLContext:
    """Whom to trust, read once a process: 20 ms and a megabyte, also for a client on loopback."""
    return httpx2.create_ssl_context()


def _start[T](work: Coroutine[object, object, T], name: str, trace: HttpTrace) -> asyncio.Task[T]:
    """A task whose HTTP requests, wherever the SDK sends them from, write to ``trace``."""
    context = contextvars.copy_context()
    context.run(TRACE.set, trace)
    return asyncio.create_task(work, name=name, context=context)


def _read(answer: CallToolResult | MCPError, seconds: float, call_id: str) -> ToolResult:
    if isinstance(answer, MCPError):
        code, text = f"jsonrpc{answer.code}", answer.message
        return ToolResult(
            ok=False, text=text, structured={}, seconds=seconds, code=code, call_id=call_id
        )
    envelope: Mapping[str, object] = answer.structured_content or {}
    texts = [part.text for part in answer.content if isinstance(part, TextContent)]
    return ToolResult(
        ok=not answer.is_error and envelope.get("ok", True) is not False,
        text="\n".join(texts),
        structured=envelope,
        seconds=seconds,
        code=str(envelope.get("code", "")),
        call_id=call_id,
    )
