# SPDX-License-Identifier: Apache-2.0
"""The layer over envkit's own boxes: signals, sockets, streams and limits."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any, Final, override

from envkit.agent.replay import FINAL_ANSWER
from envkit.fault import EnvkitError
from envkit.preflight.chaos import hands, model
from envkit.preflight.chaos.channel import Bent, speak_noise
from envkit.preflight.chaos.layer import Layer
from envkit.preflight.chaos.streams import BENDS, bend_down, bend_up, full_disk
from envkit.preflight.chaos.wire import NOISE, Relay
from envkit.sandbox.local import LocalEnvironment
from envkit.sandbox.prepare import Prepared
from envkit.sandbox.spec import BoxSpec, GatewayAddress

_TURNS: Final = 5
"""Of the fork server's loop: it sees a box's end in one of them. A box that is closed sooner ends
like any other, which nobody can tell and which costs nothing."""


class LocalLayer(Layer, LocalEnvironment):
    """See the module."""

    # --- boxes and gateways come up ---

    @override
    def _spec(self, prepared: Prepared) -> BoxSpec:
        spec = super()._spec(prepared)
        if self.due("start" if self.is_agents() else "grade-start") != "garbage":
            return spec
        noise = self.trial_paths.trial_dir / "noise"
        noise.write_bytes(NOISE)
        self.log("its root is a file of noise")
        return BoxSpec.from_dict({**spec.to_dict(), "root": str(noise)})

    @override
    async def _ask(self, op: str, fds: list[int] | None = None, **arguments: Any) -> dict[str, Any]:
        if op == "gateway" and (kind := self.due("gateway")):
            return await self._harm_gateway_start(kind, fds or [], arguments)
        answer = await super()._ask(op, fds, **arguments)
        started = "start" if self.is_agents() else "grade-start"
        if op == "open" and self.due(started) == "kill-box":
            await self._kill_box()
        return answer

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

    def _bend_channel(self) -> None:
        """What the fork server answers from now on to some of what is asked."""
        assert self._session is not None
        self._session._channel = Bent(self._session.channel)  # pyright: ignore

    async def _parts(self) -> dict[str, Any]:
        return await super()._ask("parts")

    async def _gateway_pid(self) -> int:
        parts = await self._parts()
        return await hands.gateway_in(parts["gateway"]["pid"])

    async def _kill_box(self, part: str = "box") -> None:
        """SIGKILL process 1 of a box."""
        self.log(await hands.kill((await self._parts())[part]["pid"]))

    # --- the agent and its gateway ---

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
                self.log(await hands.kill(await self._gateway_pid()))
            case "stop-gateway":
                self.log(await hands.stop(await self._gateway_pid()))
            case "kill-gateway-box":
                await self._kill_box("gateway")
            case "kill-box":
                await self._kill_box()
            case "out-of-memory":
                await self._starve_gateway()
            case "clock-jump":
                self.log(hands.jump_clock(self.hang_s + 1))
            case "kill-trial":
                self.die(signal.SIGKILL)
            case "stop-trial":
                self.die(signal.SIGSTOP)
            case kind:
                raise AssertionError(kind)

    async def _starve_gateway(self) -> None:
        parts, pid = await self._parts(), await self._gateway_pid()
        self._starve(parts["gateway"]["groups"], hands.gone(os.pidfd_open(pid), pid))

    def _starve(self, groups: Sequence[str], killed: Coroutine[Any, Any, str]) -> None:
        """The kernel kills at the next page that is wanted: what follows wants some."""
        limit = hands.starve_of_memory(groups)
        self._struck = True

        async def watch() -> None:
            try:
                self.log(f"{limit}: {await killed}")
            except EnvkitError as error:
                self.log(f"{limit}: {error}", took=False)

        self._watching = asyncio.create_task(watch())

    async def _act_as_the_model(self, kind: str) -> None:
        """Through the same tool as the agent, which reads no answer."""
        address = await super().tool_endpoint()
        self._struck = True
        with contextlib.suppress(EnvkitError):
            self.log(f"the model's code ended: {await model.act(kind, address)}")

    # --- files in and out ---

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        kind = self.due("answer")
        if self.is_agents() and target_path == FINAL_ANSWER and kind in model.DEEDS:
            await self._act_as_the_model(kind)
        await super().upload_file(source_path, target_path)

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        full = self.collects(source_dir) and self.due("collect") == "disk-full"
        if full:
            self.log("no file of the host takes a byte")
        with full_disk() if full else contextlib.nullcontext():
            await super().download_dir(source_dir, target_dir)

    @override
    async def _transfer(self, what: str, path: str, fds: list[int]) -> int:
        kind = self.due(self._phase_of(what, path))
        if kind == "kill-box":
            fds = [os.dup(fd) for fd in fds]  # the caller takes them for sent, and closes its own
            try:
                await self._kill_box()
                return await super()._transfer(what, path, fds)
            finally:
                for fd in fds:
                    os.close(fd)
        if kind in BENDS:
            self.log(f"the stream of {path} is {kind}")
            bend = bend_up if what == "unpack" else bend_down
            return await bend(super()._transfer, what, path, fds[0], BENDS[kind])
        return await super()._transfer(what, path, fds)

    def _phase_of(self, what: str, path: str) -> str:
        agents = self.is_agents()
        match what:
            case "unpack" if agents and path == str(Path(FINAL_ANSWER).parent):
                return "answer"
            case "unpack" if not agents and not path.startswith("/tests"):
                return "carry"
            case "pack" if self.collects(path):
                return "collect"
            case "pack" if not agents and path == "/logs/verifier":
                return "reward"
            case _:
                return ""

    # --- the verifier and the end ---

    @override
    async def harm_verifier(self, kind: str, command: str) -> str:
        parts = await self._parts()
        match kind:
            case "out-of-memory":
                self._starve(parts["box"]["groups"], hands.killed_in(parts["box"]["groups"]))
            case "disk-full":
                self.log(hands.fill(self._workspace()))
            case "kill-box":
                self._watching = asyncio.create_task(self._kill_box())
                return "sleep 1000"
            case _:
                raise AssertionError(kind)
        return command

    def _workspace(self) -> Path:
        """Where the fork server mounts what this box writes, in the namespace it shares with us."""
        assert self._session is not None
        stage = self._session.stage
        run, trial = stage.name.rpartition("-")[2], self.strike.trial
        return stage / "w" / f"{run}-{trial}-{self._name}"

    @override
    async def stop(self, delete: bool) -> None:
        kind = self.due("stop" if self.is_agents() else "grade-stop")
        if kind == "kill-box" and self._name:
            await self._kill_box()
            for _ in range(_TURNS):
                await super()._ask("usage")
        if kind == "garbage":
            self._bend_channel()
            self.log("the answer lacks what was used")
        await super().stop(delete)
