# SPDX-License-Identifier: Apache-2.0
"""A box's way to warmed interpreters: the socket of its shim, and commands that are one Python.

Contract: what comes through the socket is the box's own code, so it gains nothing but a process in
that box, confined as any other; it is read there and not here. No more live at once, and no more
start in a second, than a box could make the host suffer from; beyond that it gets a closed
connection and starts cold interpreters at its own cost. A box whose ``/usr`` was changed starts
cold ones only: what is warmed is the root as it was built.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from envkit.deadline import DeadlineExceeded, deadline
from envkit.sandbox import loopio
from envkit.sandbox.box import Box
from envkit.sandbox.bwrap import Bind
from envkit.sandbox.enter import Command
from envkit.sandbox.warm import request
from envkit.sandbox.warm.parent import Zygote
from envkit.sandbox.warm.program import Cold, parse

READY_S: Final = 60.0
"""Seconds until a fork must say it is ready; it takes milliseconds where there is a core, and a
cold one would wait for that core just as long."""

LIVE: Final = 64
"""Warmed interpreters of one box at once, asked for through its socket."""

BURST: Final = 100
PER_S: Final = 50.0
"""Of them, how many may start: each costs the host some 5 ms that no quota of the box counts."""

_SEEN_AT: Final = "/run/envkit"
_NAME: Final = "python"
_BACKLOG: Final = 64
_LIFE_BYTES: Final = 64
_CREDENTIALS: Final = struct.Struct("3i")
_NAMES: Final = frozenset({"python3", "python"})
_FIRST_ON_PATH: Final = "/usr/local/bin:"
_INTACT: Final = "usr"
_KILLED: Final = 128 + 9


@dataclass(slots=True, eq=False)
class Guest:
    """A warmed interpreter that runs in the box."""

    asker: int
    """Host pid of the shim that asked for it; 0 where the fork server did."""
    waiter: int = 0
    own_cpu_s: float = 0.0
    """Of entering the box and waiting."""
    cpu_s: float = 0.0
    """Of the interpreter and its children."""


@dataclass(frozen=True, slots=True)
class Direct:
    """A command that became a warmed interpreter without a shell or a shim."""

    guest: Guest
    conn: socket.socket

    def end(self) -> None:
        """Have its session killed; its code still comes."""
        with contextlib.suppress(OSError):
            self.conn.shutdown(socket.SHUT_WR)

    async def code(self) -> int:
        """Its exit status; 128 + n for signal n."""
        with self.conn:
            kind, code = await _answer(self.conn)
        if kind != request.ENDED:
            return _KILLED
        return code if code >= 0 else 128 - code


class Door:
    """Of one box; opened before the box starts."""

    def __init__(self, directory: Path, zygote: Zygote | None, upper: Path) -> None:
        """``directory`` is this box's alone; ``upper`` the writable layer of its root."""
        self._directory = directory
        self._zygote = zygote
        self._upper = upper
        self.started = 0
        """Programs that warmed interpreters have begun to run."""
        self.admitted = 0
        """Forks that were asked for, what has been refused in the box included."""
        self._guests: set[Guest] = set()
        self._watchers: set[asyncio.Task[None]] = set()
        self._tokens, self._counted = float(BURST), time.monotonic()
        self._box: Box | None = None
        self._on_ended: Callable[[Guest], None] | None = None
        self._listener = _listen(directory) if zygote else None

    def binds(self) -> list[Bind]:
        """What the box must see of it."""
        return [Bind(self._directory, _SEEN_AT)] if self._listener else []

    def serve(self, box: Box, on_ended: Callable[[Guest], None]) -> None:
        """Let in what comes from ``box``; ``on_ended`` gets each guest when it is gone."""
        self._box, self._on_ended = box, on_ended
        if self._listener:
            asyncio.get_running_loop().add_reader(self._listener.fileno(), self._accept)

    def followers(self) -> Mapping[int, int]:
        """Host pids of waiters by those of the shims that stand for what they wait for."""
        return {guest.asker: guest.waiter for guest in self._guests if guest.waiter}

    async def start(self, command: Command) -> Direct | None:
        """Start a command that is one Python; nothing when a cold interpreter must do it."""
        if not self._fits(command):
            return None
        conn, theirs = socket.socketpair()
        conn.setblocking(False)
        try:
            with theirs:
                guest = await self._admit(theirs, asker=0)
            if guest and await _introduce(conn, command):
                return Direct(guest, conn)
        except BaseException:
            conn.close()
            raise
        conn.close()
        return None

    def close(self) -> None:
        """Let nobody in any more; those inside end with the box."""
        if self._listener:
            asyncio.get_running_loop().remove_reader(self._listener.fileno())
            self._listener.close()
            self._listener = None
            (self._directory / _NAME).unlink(missing_ok=True)
            self._directory.rmdir()

    def _fits(self, command: Command) -> bool:
        if command.argv[0] not in _NAMES or not self._usable():
            return False
        if not command.env.get("PATH", "").startswith(_FIRST_ON_PATH):
            return False
        try:
            parse(command.argv[1:])
        except Cold:
            return False
        return True

    def _usable(self) -> bool:
        ready = self._zygote is not None and self._zygote.ready
        return ready and not (self._upper / _INTACT).exists()

    def _accept(self) -> None:
        if self._listener is None:
            return
        try:
            conn, _ = self._listener.accept()
        except OSError:
            return  # whoever it was has gone
        if len(self._guests) < LIVE and self._take_token() and self._usable():
            self._keep(self._let_in(conn))
        else:
            conn.close()

    async def _let_in(self, conn: socket.socket) -> None:
        with conn:
            await self._admit(conn, _peer(conn))

    def _take_token(self) -> bool:
        now = time.monotonic()
        self._tokens = min(BURST, self._tokens + PER_S * (now - self._counted))
        self._counted = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    async def _admit(self, conn: socket.socket, asker: int) -> Guest | None:
        """Have a child of the warmed parent serve ``conn`` in the box."""
        if self._zygote is None or self._box is None:
            return None
        guest = Guest(asker)
        self._guests.add(guest)
        life, theirs = os.pipe()
        self._keep(self._watch(guest, life))
        try:
            asked = await self._zygote.ask(self._box, conn.fileno(), theirs)
        finally:
            os.close(theirs)
        self.admitted += asked
        return guest if asked else None

    def _keep(self, waiting: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(waiting)
        self._watchers.add(task)
        task.add_done_callback(self._watchers.discard)

    async def _watch(self, guest: Guest, life: int) -> None:
        """The waiter says its pid, at its end what was used, and is gone when the pipe ends."""
        try:
            while said := await loopio.read_some(life, _LIFE_BYTES):
                for line in said.decode().splitlines():
                    match line.split():
                        case ["started"]:
                            self.started += 1
                        case [pid]:
                            guest.waiter = int(pid)
                        case [own, used]:
                            guest.own_cpu_s, guest.cpu_s = float(own), float(used)
                        case _:
                            pass
        finally:
            os.close(life)
            self._guests.discard(guest)
        if self._on_ended:
            self._on_ended(guest)


async def _introduce(conn: socket.socket, command: Command) -> bool:
    """Say what is asked; true when it has been told to go, false when nothing of it has run."""
    loop = asyncio.get_running_loop()
    frame = request.pack(command.argv, command.env, command.cwd)
    fds = [command.stdin, command.stdout, command.stderr]
    try:
        async with deadline("warm", READY_S):
            sent = socket.send_fds(conn, [frame], fds)
            await loop.sock_sendall(conn, frame[sent:])
            kind, _ = await _answer(conn)
            if kind == request.READY:
                await loop.sock_sendall(conn, request.GO)
    except (OSError, DeadlineExceeded):
        return False
    return kind == request.READY


async def _answer(conn: socket.socket) -> tuple[bytes, int]:
    data = b""
    while len(data) < request.ANSWER.size:
        more = await asyncio.get_running_loop().sock_recv(conn, request.ANSWER.size - len(data))
        if not more:
            return b"", 0
        data += more
    return request.ANSWER.unpack(data)


def _listen(directory: Path) -> socket.socket:
    directory.mkdir(parents=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    place = os.open(directory, os.O_PATH | os.O_DIRECTORY)
    try:  # a socket's address is short, and a box sees it
        listener.bind(f"/proc/self/fd/{place}/{_NAME}")
    finally:
        os.close(place)
    (directory / _NAME).chmod(0o666)
    listener.listen(_BACKLOG)
    return listener


def _peer(conn: socket.socket) -> int:
    size = _CREDENTIALS.size
    return _CREDENTIALS.unpack(conn.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[0]
