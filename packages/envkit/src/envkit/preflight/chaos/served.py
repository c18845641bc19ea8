# SPDX-License-Identifier: Apache-2.0
"""The layer over the gateway of a box of ours: what its agent asks it, and who answers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Coroutine, Sequence
from typing import Any, override

from envkit.fault import EnvkitError
from envkit.preflight.chaos import hands, model
from envkit.preflight.chaos.channel import Bent, speak_noise
from envkit.preflight.chaos.layer import Layer
from envkit.preflight.chaos.wire import Relay
from envkit.sandbox.local import LocalEnvironment
from envkit.sandbox.spec import GatewayAddress


class ServedLayer(Layer, LocalEnvironment):
    """See the module."""

    @override
    async def _ask(self, op: str, fds: list[int] | None = None, **arguments: Any) -> dict[str, Any]:
        if op == "gateway" and (kind := self.due("gateway")):
            return await self._harm_gateway_start(kind, fds or [], arguments)
        return await super()._ask(op, fds, **arguments)

    async def _harm_gateway_start(
        self, kind: str, fds: list[int], arguments: dict[str, Any]
    ) -> dict[str, Any]:
        if kind == "refused":
            self._bend_channel()
            self.log("the fork of the gateway is refused")
        if kind == "garbage":
            await speak_noise(os.dup(fds[0]))
            self.log("what listens speaks noise")
            return {}
        answer = await super()._ask("gateway", fds, **arguments)
        pid = await self._gateway_pid()
        self.log(await (hands.kill(pid) if kind == "kill-gateway" else hands.stop(pid)))
        return answer

    @override
    async def tool_endpoint(self) -> GatewayAddress:
        real = await super().tool_endpoint()
        kind = self.due("connect", "list", "call")
        if kind in model.DEEDS:
            await self._act_as_the_model(kind)
        elif kind:
            port = int(real.url.split(":")[2].partition("/")[0])
            relay = Relay(port, self.strike.phase, kind, self._hit, self.log)
            return GatewayAddress(
                url=f"http://127.0.0.1:{await relay.start()}/mcp/",
                token=real.token,
                headers=real.headers,
            )
        return real

    async def _hit(self) -> None:
        """A request is on the wire."""
        match self.strike.kind:
            case "kill-gateway":
                # The client is to see it before whoever watches the gateway says so.
                killed = hands.killed(await self._gateway_pid())
                self._watching = asyncio.create_task(self._log(killed))
            case "stop-gateway":
                self.log(await hands.stop(await self._gateway_pid()))
            case "kill-gateway-box":
                await self._kill_box("gateway")
            case "kill-box":
                await self._kill_box()
            case "out-of-memory":
                await self._starve_gateway()
            case "pause":
                self.log(await hands.pause(await self._gateway_pid()))
            case "clock-jump" | "wall-clock-back" | "wall-clock-ahead" as kind:
                self.change_clock(kind)
            case "kill-trial":
                self.die(signal.SIGKILL)
            case "stop-trial":
                self.die(signal.SIGSTOP)
            case kind:
                raise AssertionError(kind)

    async def _log(self, done: Coroutine[Any, Any, str]) -> None:
        self.log(await done)

    async def _starve_gateway(self) -> None:
        parts, pid = await self._parts(), await self._gateway_pid()
        self._starve(parts["gateway"]["groups"], hands.gone(os.pidfd_open(pid), pid))

    async def _act_as_the_model(self, kind: str) -> None:
        """Through the same tool as the agent, which reads no answer."""
        address = await super().tool_endpoint()
        self.strikes()
        with contextlib.suppress(EnvkitError):
            self.log(f"the model's code ended: {await model.act(kind, address)}")

    async def _parts(self) -> dict[str, Any]:
        return await super()._ask("parts")

    async def _gateway_pid(self) -> int:
        return int((await self._parts())["gateway"]["pid"])

    async def _kill_box(self, part: str = "box") -> None:
        """SIGKILL process 1 of a box."""
        self.log(await hands.kill((await self._parts())[part]["pid"]))

    def _bend_channel(self) -> None:
        """What the fork server answers from now on to some of what is asked."""
        assert self._session is not None
        self._session._channel = Bent(self._session.channel)  # pyright: ignore

    def _starve(self, groups: Sequence[str], killed: Coroutine[Any, Any, str], **room: int) -> None:
        """The kernel kills at the next page that is wanted: what follows wants some."""
        limit = hands.starve_of_memory(groups, **room)
        self.strikes()

        async def watch() -> None:
            try:
                self.log(f"{limit}: {await killed}")
            except EnvkitError as error:
                self.log(f"{limit}: {error}", took=False)

        self._watching = asyncio.create_task(watch())
