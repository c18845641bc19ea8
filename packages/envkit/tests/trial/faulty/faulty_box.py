# SPDX-License-Identifier: Apache-2.0
"""The local environment with one fault, named by its trial: ``OPERATION.KIND.ROLE``.

It goes around nothing of ours: the guard, the classifier and Harbor see what a provider with that
fault would show them. The fault strikes the first attempt only, unless its kind is ``always_…``.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, override

import faulty_hands
from faulty_wire import NOISE, Relay
from harbor.environments.base import ExecResult

from envkit.sandbox.channel import Channel, RequestFailed
from envkit.sandbox.ledger import ledger
from envkit.sandbox.local import LocalEnvironment
from envkit.sandbox.prepare import Prepared
from envkit.sandbox.spec import BoxSpec, GatewayAddress

_REPORTS: Final = {
    "raise": "echo 'Traceback (most recent call last):' >&2; exit 1",
    "garbage": "printf '{\"reward\": ' > /logs/verifier/reward.json",
    "binary": "printf '\\x80\\xff' > /logs/verifier/reward.json",
    "nan": "printf '{\"reward\": NaN}' > /logs/verifier/reward.json",
    "nameless": "printf '{\"score\": 1.0}' > /logs/verifier/reward.json",
    "bare": "printf '1.0' > /logs/verifier/reward.json",
    "silent": "true",
    "hang": "sleep infinity",
}
"""What a verifier does in place of its work."""

_TURNS: Final = 5
_CUT: Final = 515
"""Bytes of a stream that end inside its first file."""

_MEMBER: Final = 512 + 430_080
"""Bytes of the first file in a stream of the tiny world: its header, its content filled up."""


class FaultyEnvironment(LocalEnvironment):
    """See the module."""

    _gateway_inode = 0

    def fault(self, operation: str) -> str:
        """The kind of fault that meets ``operation`` now; empty for none."""
        wanted, kind, role, *later = self.trial_paths.trial_dir.name.split(".")
        if (wanted, role) != (operation, self._role()) or (later and "always" not in kind):
            return ""
        return kind.removeprefix("always_")

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)  # pyright: ignore[reportUnknownMemberType]
        if self.fault("construct"):
            raise RuntimeError("an error of the constructor's own")

    async def kill_box(self) -> None:
        """SIGKILL process 1 of this box from outside, and wait until the fork server knows."""
        where = await LocalEnvironment.exec(self, "readlink /proc/self/ns/pid")
        await faulty_hands.kill(faulty_hands.process_1((where.stdout or "").strip()))
        assert self._session is not None
        for _ in range(_TURNS):  # of its loop: it sees the end in one of them and says so
            await self._session.channel.ask("usage", box=self._name)

    async def kill_gateway(self) -> None:
        """The same with the gateway."""
        await faulty_hands.kill(await faulty_hands.gateway_with(self._gateway_inode))
        await faulty_hands.until(
            lambda: any(f.code == "ServerDisconnected" for f in ledger().faults)
        )

    @override
    async def start(self, force_build: bool) -> None:
        await self._trial_fault(self.fault("trial"))
        await _misbehave(self.fault("start"))
        await super().start(force_build)

    async def _trial_fault(self, kind: str) -> None:
        record = self.trial_paths.trial_dir / "attempt.json"
        match kind:
            case "hang":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "raise":
                sys.exit(3)
            case "garbage":
                record.write_text('{"number": 1, "started_at": ')
                os._exit(0)
            case "hollow":
                record.write_text('{"number": 1}')
                os._exit(0)
            case _:
                pass

    @override
    def _spec(self, prepared: Prepared) -> BoxSpec:
        spec = super()._spec(prepared)
        if self.fault("start") != "garbage":
            return spec
        noise = self.trial_paths.trial_dir / "noise"
        noise.write_bytes(NOISE)
        return BoxSpec.from_dict({**spec.to_dict(), "root": str(noise)})

    @override
    async def _ask(self, op: str, fds: list[int] | None = None, **arguments: Any) -> dict[str, Any]:
        if op == "gateway":
            return await self._gateway_fault(self.fault("gateway_start"), fds or [], arguments)
        answer = await super()._ask(op, fds, **arguments)
        if op == "open" and self.fault("start") == "die":
            await self.kill_box()
        return answer

    async def _gateway_fault(
        self, kind: str, fds: list[int], arguments: dict[str, Any]
    ) -> dict[str, Any]:
        self._gateway_inode = os.fstat(fds[0]).st_ino
        match kind:
            case "raise":
                self._make_channel_crooked()
            case "garbage":
                await _speak_noise(os.dup(fds[0]))
                return {}
            case _:
                pass
        answer = await super()._ask("gateway", fds, **arguments)
        if kind in ("hang", "die"):
            pid = await faulty_hands.gateway_with(self._gateway_inode)
            os.kill(pid, signal.SIGSTOP)
            if kind == "die":
                await faulty_hands.kill(pid)
        return answer

    @override
    async def tool_endpoint(self) -> GatewayAddress:
        real = await super().tool_endpoint()
        for operation in ("mcp_connect", "mcp_list", "mcp_call", "mcp_close"):
            if kind := self.fault(operation):
                port = int(real.url.split(":")[2].partition("/")[0])
                relay = await Relay(port, operation, kind, self.kill_gateway).start()
                return GatewayAddress(url=f"http://127.0.0.1:{relay}/mcp/", token=real.token)
        return real

    @override
    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
        **_: Any,
    ) -> ExecResult:
        verifies = command.startswith(("(/tests/", "/tests/")) or "/tests/test.sh >" in command
        kind = self.fault("verify") if verifies else self.fault("exec")
        if verifies and kind != "die":
            command = _REPORTS.get(kind, command)
        elif kind == "garbage":
            command = f"printf '\\x80\\xff\\0'; {command}; printf '\\xfe'"
        elif kind == "die":
            running = asyncio.ensure_future(super().exec("sleep infinity", timeout_sec=60))
            await self.kill_box()
            return await running
        else:
            await _misbehave(kind)
        return await super().exec(command, cwd, env, timeout_sec, user)

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        await _misbehave(self.fault("transfer_up"), leave=("hang",))
        await super().upload_file(source_path, target_path)

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        if self._role() == "verifier":
            await _misbehave(self.fault("transfer_up"), leave=("hang",))
        await super().upload_dir(source_dir, target_dir)

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        if source_dir in ("/filesystem", "/logs/verifier"):
            await _misbehave(self.fault("transfer_down"), leave=("hang",))
        await super().download_dir(source_dir, target_dir)

    @override
    async def is_dir(self, path: str, user: str | int | None = None) -> bool:
        if path == "/filesystem":
            await _misbehave(self.fault("transfer_look"))
        return await super().is_dir(path, user)

    @override
    async def empty_dirs(self, dirs: Any, *, chmod: bool = True) -> ExecResult | None:
        await _misbehave(self.fault("transfer_empty"))
        return await super().empty_dirs(dirs, chmod=chmod)

    @override
    async def _transfer(self, what: str, path: str, fds: list[int]) -> int:
        up = what == "unpack" and (path == "/logs/artifacts" or self._role() == "verifier")
        down = what == "pack" and path in ("/filesystem", "/logs/verifier")
        kind = self.fault("transfer_up" if up else "transfer_down" if down else "")
        if kind == "hang":
            held = os.dup(fds[0])  # the other end is neither read nor written nor closed
            await asyncio.Event().wait()
            os.close(held)
        if kind in _MANGLED:
            return await (self._mangled_up if up else self._mangled_down)(kind, path, fds[0])
        return await super()._transfer(what, path, fds)

    async def _mangled_up(self, kind: str, path: str, source: int) -> int:
        source = os.dup(source)
        stream = await asyncio.to_thread(_read_all, source)
        if kind == "die":
            await self.kill_box()
        read_end, write_end = os.pipe()
        asking = asyncio.ensure_future(super()._transfer("unpack", path, [read_end]))
        await asyncio.sleep(0)
        os.close(read_end)
        await asyncio.to_thread(_write_all, write_end, stream[:_CUT])
        return await asking

    async def _mangled_down(self, kind: str, path: str, target: int) -> int:
        target = os.dup(target)
        if kind == "die" and self._role() == "verifier":  # its files all fit into a pipe
            await self.kill_box()
        read_end, write_end = os.pipe()
        asking = asyncio.ensure_future(super()._transfer("pack", path, [write_end]))
        await asyncio.sleep(0)
        os.close(write_end)
        if kind == "die" and self._role() == "agent":  # what a pipe holds is out, and no more
            await self.kill_box()
        stream = await asyncio.to_thread(_read_all, read_end)
        await asyncio.to_thread(_write_all, target, _MANGLED[kind](stream))
        return await asking

    @override
    async def stop(self, delete: bool) -> None:
        kind = self.fault("stop")
        await _misbehave(kind)
        if kind == "die":
            await self.kill_box()
        if kind == "garbage":
            self._make_channel_crooked()
        await super().stop(delete)

    def _make_channel_crooked(self) -> None:
        assert self._session is not None
        self._session._channel = _Crooked(self._session.channel)  # pyright: ignore


_MANGLED: Final[dict[str, Callable[[bytes], bytes]]] = {
    "die": lambda stream: stream,
    "garbage": lambda stream: NOISE * 16,
    "cut": lambda stream: stream[: len(stream) // 2],
    "short": lambda stream: stream[:_MEMBER],
    "empty": lambda stream: b"",
}


class _Crooked:
    """A channel whose answer to ``close`` lacks what it should say, and that forks no gateway."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def ask(self, op: str, fds: Any = (), **arguments: Any) -> dict[str, Any]:
        if op == "gateway":
            raise RequestFailed("OSError", "Cannot allocate memory")
        answer = await self._channel.ask(op, fds, **arguments)
        return {"ok": True, "usage": None} if op == "close" else answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)


async def _misbehave(kind: str, leave: tuple[str, ...] = ()) -> None:
    """The faults that need no knowledge of what is being done; other kinds are for the caller."""
    match kind:
        case "hang" if kind not in leave:
            await asyncio.Event().wait()
        case "raise":
            raise RuntimeError("an error of the provider's own")
        case "timeout":
            raise TimeoutError("timed out")
        case _:
            pass


async def _speak_noise(fd: int) -> None:
    """Serve noise on a listening socket, as long as the loop runs."""
    import socket

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(NOISE + b"\n")
        writer.close()

    sock = socket.socket(fileno=fd)
    _servers.append(await asyncio.start_server(answer, sock=sock))


_servers: Final[list[asyncio.Server]] = []


def _read_all(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as stream:
        return stream.read()


def _write_all(fd: int, stream: bytes) -> None:
    with contextlib.suppress(BrokenPipeError), os.fdopen(fd, "wb") as target:
        target.write(stream)
