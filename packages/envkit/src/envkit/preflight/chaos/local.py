# SPDX-License-Identifier: Apache-2.0
"""The layer over envkit's own boxes: signals, sockets, streams and limits."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
import socket
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, Final, override

from envkit.agent.mcp_client import Endpoint, ToolClient
from envkit.agent.replay import FINAL_ANSWER
from envkit.fault import EnvkitError
from envkit.preflight.chaos import hands
from envkit.preflight.chaos.layer import Layer
from envkit.preflight.chaos.wire import NOISE, Relay
from envkit.sandbox.channel import Channel, RequestFailed
from envkit.sandbox.local import LocalEnvironment
from envkit.sandbox.prepare import Prepared
from envkit.sandbox.spec import BoxSpec, GatewayAddress

_CUT: Final = 515
"""Bytes of a stream that end inside its first file."""

_FILLS = """\
import itertools
for number in itertools.count():
    open(f"/filesystem/{number}", "x").close()
"""
"""By names: a box whose memory is no larger than its storage runs out of memory by bytes first."""

_STREAMS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "garbage": lambda stream: NOISE * 16,
    "cut": lambda stream: stream[:_CUT],
    "empty": lambda stream: b"",
}
_TURNS: Final = 5
"""Of the fork server's loop: it sees a box's end in one of them. A box that is closed sooner ends
like any other, which nobody can tell and which costs nothing."""

_CODE: Final = "code_execution_server_code_exec"
_MODEL: Final[dict[str, dict[str, Any]]] = {
    "model-kills-all": {"code": "kill -9 -1; kill -9 1; kill 1"},
    "model-endless": {"code": "sleep 1000", "timeout_s": 1},
    "model-memory": {
        "code": "kept = []\nwhile True: kept.append(bytes(range(256)) * (1 << 16))",
        "language": "python",
    },
    "model-disk": {"code": _FILLS, "language": "python"},
    "model-box": {"code": "rm -rf /logs; echo > /logs"},
}
"""What the model's own code does in its box: not chaos, but what chaos must not be taken for."""


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
            await _speak_noise(os.dup(fds[0]))
            self.log("what listens speaks noise")
            return {}
        answer = await super()._ask("gateway", fds, **arguments)
        pid = await self._gateway_pid()
        self.log(await (hands.kill(pid) if kind == "kill-gateway" else hands.stop(pid)))
        return answer

    def _bend_channel(self) -> None:
        """What the fork server answers from now on to some of what is asked."""
        assert self._session is not None
        self._session._channel = _Bent(self._session.channel)  # pyright: ignore

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
        if kind in _MODEL:
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
        """The kernel kills it at the next page it wants: the request that follows takes some."""
        parts, pid = await self._parts(), await self._gateway_pid()
        limit = hands.starve_of_memory(parts["gateway"]["groups"])
        self._struck = True
        fd = os.pidfd_open(pid)

        async def watch() -> None:
            try:
                self.log(f"{limit}: {await hands.gone(fd, pid)}")
            except EnvkitError:
                self.log(f"{limit}: process {pid} lives on", took=False)
            finally:
                os.close(fd)

        self._watching = asyncio.create_task(watch())

    async def _act_as_the_model(self, kind: str) -> None:
        """Through the same tool as the agent, which reads no answer."""
        address = await super().tool_endpoint()
        self._struck = True
        with contextlib.suppress(EnvkitError):
            async with ToolClient.open(Endpoint(url=address.url, token=address.token)) as tools:
                done = await tools.call(_CODE, _MODEL[kind])
                self.log(f"the model's code ended: {done.code or 'ok'}")

    # --- files in and out ---

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        kind = self.due("answer")
        if self.is_agents() and target_path == FINAL_ANSWER and kind in _MODEL:
            await self._act_as_the_model(kind)
        await super().upload_file(source_path, target_path)

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        full = self.collects(source_dir) and self.due("collect") == "disk-full"
        if full:
            self.log("no file of the host takes a byte")
        with _full_disk() if full else contextlib.nullcontext():
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
        if kind in _STREAMS:
            self.log(f"the stream of {path} is {kind}")
            bend = _bend_up if what == "unpack" else _bend_down
            return await bend(super()._transfer, what, path, fds[0], _STREAMS[kind])
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
                self.log(hands.starve_of_memory(parts["box"]["groups"]))
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


class _Bent:
    """A channel whose answer to ``close`` lacks what it should say, and that forks no gateway."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def ask(self, op: str, fds: Any = (), **arguments: Any) -> dict[str, Any]:
        if op == "gateway":
            raise RequestFailed("BlockingIOError", "[Errno 11] Resource temporarily unavailable")
        answer = await self._channel.ask(op, fds, **arguments)
        return {"ok": True, "usage": None} if op == "close" else answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)


type _Transfer = Callable[[str, str, list[int]], Any]


async def _bend_up(
    transfer: _Transfer, what: str, path: str, source: int, bend: Callable[[bytes], bytes]
) -> int:
    stream = await asyncio.to_thread(_read_all, os.dup(source))
    read_end, write_end = os.pipe()
    asking = asyncio.ensure_future(transfer(what, path, [read_end]))
    await asyncio.sleep(0)  # it is sent: our copy of the end can go
    os.close(read_end)
    await asyncio.to_thread(_write_all, write_end, bend(stream))
    return await asking


async def _bend_down(
    transfer: _Transfer, what: str, path: str, target: int, bend: Callable[[bytes], bytes]
) -> int:
    target = os.dup(target)
    read_end, write_end = os.pipe()
    asking = asyncio.ensure_future(transfer(what, path, [write_end]))
    await asyncio.sleep(0)  # it is sent: our copy of the end can go
    os.close(write_end)
    stream = await asyncio.to_thread(_read_all, read_end)
    await asyncio.to_thread(_write_all, target, bend(stream))
    return await asking


@contextlib.contextmanager
def _full_disk() -> Generator[None]:
    """Files of this process may not grow: the kernel refuses with EFBIG, as with ENOSPC."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def _speak_noise(fd: int) -> None:
    """Serve noise on a listening socket, as long as the loop runs."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(NOISE + b"\n")
        writer.close()

    _noisy.append(await asyncio.start_server(answer, sock=socket.socket(fileno=fd)))


_noisy: Final[list[asyncio.Server]] = []


def _read_all(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as stream:
        return stream.read()


def _write_all(fd: int, stream: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), os.fdopen(fd, "wb") as target:
        target.write(stream)
