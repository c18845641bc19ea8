# SPDX-License-Identifier: Apache-2.0
"""One MCP server of an episode: connected, lost, connected again.

Contract: a call runs at most once, whatever becomes of the connection. A gateway of envkit keeps a
journal by the calls' ids: after a loss the same id is sent again, and the journal's answer is the
call's. No other server is asked twice; what became of the call is then unknown, and the agent is
told so. A loss that changed nothing is nobody's fault; any other stands on the ledger.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Final, override

from envkit.agent.mcp_client import Endpoint, Tool, ToolClient, ToolResult
from envkit.deadline import Budgets
from envkit.fault import EnvkitError, ServerDisconnected
from envkit.sandbox.ledger import ledger

UNKNOWN: Final = "outcome_unknown"
"""Code of a call that may or may not have worked; the gateway's journal says the same."""

_RECONNECTS: Final = 3
_PAUSE_S: Final = 0.2
_TOLD: Final = (
    f"{UNKNOWN}: the connection to the server was lost during this call; it may or may not have"
    " worked. Look at the state first (list or read) before you call it again."
)


class QuietClient(ToolClient):
    """Leaves it to its owner what a loss comes to, and whether the ledger must know."""

    @override
    async def _ask[T](self, op: str, seconds: float, work: Coroutine[object, object, T]) -> T:
        return await self._asked(op, seconds, work)


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A call that came back."""

    result: ToolResult
    disturbed: bool = False
    """The connection was lost meanwhile: the time it took is nobody's."""


class Connection:
    """To one server; use it in a ``with`` and from one task."""

    def __init__(self, endpoint: Endpoint, budgets: Budgets, *, journals: bool) -> None:
        """``journals`` says that a call id may be sent again: a gateway of envkit's."""
        self._endpoint = endpoint
        self._budgets = budgets
        self._journals = journals
        self._open = AsyncExitStack()
        self._client: QuietClient | None = None

    async def __aenter__(self) -> Connection:
        await self._noted(self._connected())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._drop()

    async def list_tools(self) -> tuple[Tool, ...]:
        """Every tool that it lists; raises as `ToolClient` does."""
        client = await self._noted(self._connected())
        return await self._noted(client.list_tools())

    async def call(self, name: str, arguments: Mapping[str, object], call_id: str) -> Called:
        """Have a tool called once.

        Raises:
            EnvkitError: the server failed, and nothing can be said of the call.
        """
        clock = asyncio.get_running_loop().time
        began = clock()
        called = await self._noted(self._called(name, arguments, call_id))
        if called.result.code == UNKNOWN:
            ledger().note(ServerDisconnected(f"{name}: nobody knows what became of {call_id}"))
        return replace(called, result=replace(called.result, seconds=clock() - began))

    async def _called(self, name: str, arguments: Mapping[str, object], call_id: str) -> Called:
        try:
            client = await self._connected()
            return Called(result=await client.call(name, arguments, call_id=call_id))
        except ServerDisconnected as lost:
            await self._drop()
            if self._journals:
                return await self._again(lost, name, arguments, call_id)
            await self._reconnected(lost)
        unknown = ToolResult(ok=False, text=_TOLD, structured={}, seconds=0, code=UNKNOWN)
        return Called(result=replace(unknown, call_id=call_id), disturbed=True)

    async def _again(
        self, lost: ServerDisconnected, name: str, arguments: Mapping[str, object], call_id: str
    ) -> Called:
        """Send the same id until it is answered."""
        for _ in range(_RECONNECTS):
            client = await self._reconnected(lost)
            try:
                result = await client.call(name, arguments, call_id=call_id)
            except ServerDisconnected:
                await self._drop()
            else:
                return Called(result=result, disturbed=True)
        raise lost

    async def _reconnected(self, lost: ServerDisconnected) -> QuietClient:
        await asyncio.sleep(_PAUSE_S)
        try:
            return await self._connected()
        except EnvkitError as error:
            raise lost from error

    async def _connected(self) -> QuietClient:
        if self._client is None:
            opening = QuietClient.open(self._endpoint, self._budgets)
            client = await self._open.enter_async_context(opening)
            assert isinstance(client, QuietClient)
            self._client = client
        return self._client

    async def _drop(self) -> None:
        self._client = None
        await self._open.aclose()

    async def _noted[T](self, work: Coroutine[object, object, T]) -> T:
        """What cannot be mended stands on the ledger: an agent may go on without its tools."""
        try:
            return await work
        except EnvkitError as error:
            ledger().note(error)
            raise
