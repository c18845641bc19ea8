# SPDX-License-Identifier: Apache-2.0
"""The fork server's side of the warmed parents: one for each root, started once, asked often.

Contract: a parent that is not ready, is gone or takes nothing for a while answers ``False``, and
whoever asks starts a cold interpreter; the log is told once why. A parent ends with the fork
server.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final, NoReturn

from envkit.deadline import DeadlineExceeded, deadline
from envkit.image.rootfs import INTERPRETER, promised_modules
from envkit.sandbox import kernel, loopio
from envkit.sandbox.box import Box

WARM_S: Final = 45.0
"""Importing pandas and its like takes 2 s; on a loaded machine with cold files, thirty."""

ASK_S: Final = 30.0
"""Seconds in which it must take a request: a fork is 3 ms, and 200 may wait in its socket."""

_READY_BYTES: Final = 16

_SOURCES: Final = Path(__file__).resolve().parents[2]
_SEEN_AT: Final = "/run"
"""Where the parent's own code lies in its mount namespace; boxes have something else there."""

_BOOT: Final = """\
import sys
startup = frozenset(sys.modules)
for name, path in (("envkit", "/run"), ("envkit.sandbox", "/run/sandbox")):
    sys.modules[name] = type(sys)(name)
    sys.modules[name].__path__ = [path]
from envkit.sandbox.warm.zygote import serve
serve(startup)()
"""
"""The packages themselves are passed over: what they import is not in the root."""


class Zygote:
    """A warmed parent."""

    def __init__(self, root: Path, mount: Path, run: str) -> None:
        """Start it; ``mount`` is a directory of the stage where its root is bound."""
        self.root = root
        self.ready = False
        self.settled = asyncio.Event()
        """It is ready, or will never be."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            _become_zygote(root, mount, run, theirs.fileno(), server)
        theirs.close()
        ours.setblocking(False)
        self._socket = ours
        self._asked_to_end = False
        self._asking = asyncio.Lock()

    async def live(self) -> None:
        """See it warm up and end; what it does without being asked is said."""
        try:
            async with deadline("warm", WARM_S):
                said = await loopio.read_some(self._socket.fileno(), _READY_BYTES)
        except DeadlineExceeded:
            said = b""
        self.ready = bool(said) and not self._asked_to_end
        self.settled.set()
        if not said:
            self._complain("did not get ready")
            self.end()
        await loopio.wait_child(self._pid)
        self.ready = False
        self._socket.close()
        self._complain("ended")

    async def ask(self, box: Box, conn: int, life: int) -> bool:
        """Have it fork into ``box`` and serve ``conn`` there; ``life`` gets its waiter's words."""
        if not self.ready or box.fd < 0:
            return False
        settings = {"limits": asdict(box.limits), "network_shared": box.network}
        procs: list[int] = []
        try:
            procs = box.group.open_procs() if box.group else []
            fds = [conn, life, box.fd, *procs]
            async with deadline("warm", ASK_S), self._asking:
                await self._send(json.dumps(settings).encode(), fds)
        except (OSError, DeadlineExceeded):
            return False  # it ended, hangs, or the box's group is gone
        finally:
            for fd in procs:
                os.close(fd)
        return True

    async def _send(self, message: bytes, fds: Sequence[int]) -> None:
        while True:
            try:
                socket.send_fds(self._socket, [message], fds)
            except BlockingIOError:
                await loopio.writable(self._socket.fileno())
            else:
                return

    def cpu_s(self) -> float:
        """CPU seconds it has used, warming included."""
        return loopio.cpu_s_of(self._pid)

    def end(self) -> None:
        """Kill it; what it forked lives on with its box."""
        self._asked_to_end, self.ready = True, False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)

    def _complain(self, what: str) -> None:
        if self._asked_to_end:
            return
        print(
            f"envkit: the warmed interpreter of {self.root.name} {what};"
            " its boxes start cold ones, which takes longer",
            file=sys.stderr,
            flush=True,
        )


def _become_zygote(root: Path, mount: Path, run: str, sock: int, server: int) -> NoReturn:
    try:
        kernel.die_with_parent(server)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(2, 1)
        os.dup2(sock, 3)
        os.set_inheritable(3, True)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        os.unshare(os.CLONE_NEWNS)
        kernel.mount("none", Path("/"), "none", kernel.MS_REC | kernel.MS_PRIVATE)
        packages = promised_modules(root)
        _show_root(root, mount)
        os.execve(INTERPRETER, _command(packages), _environment(run))
    except OSError as error:
        os.write(2, f"warmed interpreter: {error}\n".encode())
    finally:
        os._exit(1)


def _show_root(root: Path, mount: Path) -> None:
    """See the root read-only, this code and ``/proc``, and nothing else."""
    kernel.bind(root, mount)
    kernel.make_read_only(mount)
    own = mount / _SEEN_AT.lstrip("/")
    kernel.bind(_SOURCES, own)
    kernel.make_read_only(own)
    kernel.bind(Path("/proc"), mount / "proc")
    kernel.change_root(mount)


def _command(packages: Sequence[str]) -> list[str]:
    return ["python3", "-c", _BOOT, "3", *packages]


def _environment(run: str) -> dict[str, str]:
    """Libraries start as many threads as there are cores unless they are told; one may fork."""
    single = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {
        "ENVKIT_RUN": run,
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": "/root",
        "LANG": "C.UTF-8",
        **dict.fromkeys(single, "1"),
    }


class Zygotes:
    """The warmed parents of one fork server, by root."""

    def __init__(self, stage: Path, run: str) -> None:
        self._stage = stage
        self._run = run
        self._all: dict[Path, Zygote] = {}
        self._lives: list[asyncio.Future[None]] = []

    def of(self, root: Path) -> Zygote:
        """The parent for ``root``; started when there is none yet."""
        if root not in self._all:
            mount = self._stage / "z" / str(len(self._all))
            mount.mkdir(parents=True)
            self._all[root] = zygote = Zygote(root, mount, self._run)
            self._lives.append(asyncio.ensure_future(zygote.live()))
        return self._all[root]

    async def warm(self, roots: Sequence[Path]) -> None:
        """Start those of ``roots`` and wait until each is ready or given up."""
        for zygote in [self.of(root) for root in roots]:
            await zygote.settled.wait()

    def cpu_s(self) -> float:
        """CPU seconds of all."""
        return sum(zygote.cpu_s() for zygote in self._all.values())

    async def close(self) -> None:
        """End all, and wait until they have."""
        for zygote in self._all.values():
            zygote.end()
        await asyncio.gather(*self._lives, return_exceptions=True)
