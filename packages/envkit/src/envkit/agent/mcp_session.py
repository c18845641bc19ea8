# SPDX-License-Identifier: Apache-2.0
"""The two eras of MCP behind one `ask`: each request for itself, or a handshake and a session.

Contract: `connect` asks ``server/discover`` once; a server that does not answer it as one of the
newer era is greeted by the handshake, as the SDK's client does. After that every request carries
what its era wants: an envelope and routing headers, or the session and the version.
"""

import asyncio
import itertools
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import h11
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_NAME_HEADER, MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.inbound import encode_header_value as encoded
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    PROTOCOL_VERSION_META_KEY,
)
from mcp_types.version import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
)

from envkit import __version__
from envkit.agent.mcp_wire import (
    REFUSED,
    Answer,
    HttpStatusError,
    McpWire,
    Message,
    NotMcp,
    RpcError,
)

DISCOVER_S = 10.0
"""A server of the older era may leave an unknown method without an answer."""
WITHDRAW_S = 5.0
"""Withdrawing a request is a courtesy; its caller has gone."""
_ME: Message = {"name": "envkit", "version": __version__}
_ENVELOPE: Message = {
    PROTOCOL_VERSION_META_KEY: LATEST_MODERN_VERSION,
    CLIENT_INFO_META_KEY: _ME,
    CLIENT_CAPABILITIES_META_KEY: {},
}
_SESSION = "mcp-session-id"


class McpSession:
    """What one client and one server agreed on."""

    def __init__(self, wire: McpWire) -> None:
        self._wire = wire
        self._numbers = itertools.count(1)
        self._version = LATEST_MODERN_VERSION
        self._session = ""
        self._withdrawing: set[asyncio.Task[None]] = set()

    @property
    def modern(self) -> bool:
        """Whether every request stands for itself; closing its connection then cancels it."""
        return self._version == LATEST_MODERN_VERSION

    async def connect(self, budget_s: float) -> None:
        """Agree on an era within the caller's deadline, of which discovery gets a third at most.

        Raises what `McpWire.ask` raises.
        """
        try:
            async with asyncio.timeout(min(DISCOVER_S, budget_s / 3)):
                found = (await self.ask("server/discover", {})).result
        except HttpStatusError as error:
            if error.status in REFUSED:
                raise
        except (RpcError, NotMcp, TimeoutError):
            pass
        else:
            if LATEST_MODERN_VERSION in _versions(found):
                return
        await self._shake_hands()

    async def ask(
        self, method: str, params: Message, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Ask, as the agreed era wants it. A cancelled request of the older era is withdrawn."""
        number = next(self._numbers)
        message: Message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        if self.modern:
            params["_meta"] = {**params.get("_meta", {}), **_ENVELOPE}
        try:
            return await self._wire.ask(message, {**self._stamp(method, params), **(headers or {})})
        except asyncio.CancelledError:
            if self._version and not self.modern:
                self._withdraw(number)
            raise

    async def leave(self) -> None:
        """Let withdrawals go out and end the session, where there is one."""
        try:
            if self._withdrawing:
                await asyncio.wait(self._withdrawing)
            if self._session:
                await self._wire.leave(self._stamp("", {}))
        finally:
            for task in self._withdrawing:
                task.cancel()

    def _withdraw(self, number: int) -> None:
        """Tell the server that nobody waits: a connection that ends does not, in the older era."""
        told = self._tell_withdrawn(number)
        task = asyncio.create_task(told, name="mcp withdrawal")
        self._withdrawing.add(task)
        task.add_done_callback(self._withdrawing.discard)

    async def _tell_withdrawn(self, number: int) -> None:
        with suppress(OSError, h11.RemoteProtocolError, TimeoutError):
            async with asyncio.timeout(WITHDRAW_S):
                await self._notify("notifications/cancelled", {"requestId": number})

    async def _shake_hands(self) -> None:
        self._version = ""
        params = {
            "protocolVersion": LATEST_HANDSHAKE_VERSION,
            "capabilities": {},
            "clientInfo": _ME,
        }
        answer = await self.ask("initialize", params)
        version = answer.result.get("protocolVersion")
        if version not in HANDSHAKE_PROTOCOL_VERSIONS:
            raise NotMcp(f"it wants protocol version {str(version)[:40]!r}")
        self._version, self._session = str(version), answer.session
        await self._notify("notifications/initialized", {})

    async def _notify(self, method: str, params: Message) -> None:
        """Tell the server something of the older era."""
        message: Message = {"jsonrpc": "2.0", "method": method, "params": params}
        await self._wire.tell(message, self._stamp(method, params))

    def _stamp(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        headers = {MCP_PROTOCOL_VERSION_HEADER: self._version} if self._version else {}
        if self._session:
            headers[_SESSION] = self._session
        if self.modern:
            headers[MCP_METHOD_HEADER] = method
            if method == "tools/call":
                headers[MCP_NAME_HEADER] = encoded(params["name"])
        return headers


def _versions(found: Message) -> list[object]:
    versions: object = found.get("supportedVersions")
    return versions if isinstance(versions, list) else []  # pyright: ignore[reportUnknownVariableType]
