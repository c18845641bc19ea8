# SPDX-License-Identifier: Apache-2.0
"""A model's agent whose box or gateway is killed from outside before its second call."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, override

from envkit.agent.model import ModelAgent
from envkit.agent.types import CallRequest, Observation, Toolbelt, ToolSpec


class Striking:
    """A toolbelt around another."""

    def __init__(self, base: Toolbelt, strike: Callable[[], Awaitable[None]]) -> None:
        self.name, self._base, self._strike, self._calls = base.name, base, strike, 0

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        return self._base.tools

    async def call(self, request: CallRequest) -> Observation:
        self._calls += 1
        if self._calls == 2:
            await self._strike()
        return await self._base.call(request)

    async def keep(self, name: str, text: str) -> str:
        return await self._base.keep(name, text)


class BoxKilled(ModelAgent):
    """Its box."""

    strike = "kill_box"

    @override
    async def _belt(self, environment: Any, stack: AsyncExitStack) -> Toolbelt:
        return Striking(await super()._belt(environment, stack), getattr(environment, self.strike))


class GatewayKilled(BoxKilled):
    """Its gateway."""

    strike = "kill_gateway"


class ClosesBadly(ModelAgent):
    """Something that is closed after the answer fails."""

    @override
    async def _belt(self, environment: Any, stack: AsyncExitStack) -> Toolbelt:
        async def fail() -> None:
            raise ConnectionResetError("while closing")

        stack.push_async_callback(fail)
        return await super()._belt(environment, stack)


class NotTold(ModelAgent):
    """What it is to leave for people cannot be written."""

    @override
    async def setup(self, environment: Any) -> None:
        await super().setup(environment)
        (self.logs_dir / "trajectory.json").mkdir()
