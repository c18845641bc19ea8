# SPDX-License-Identifier: Apache-2.0
"""The warmed parent of one root's interpreters: imports once, forks into boxes on request.

Contract: one thread; a clean environment; nothing of any task is ever in its memory, because every
child is a copy of it: what is asked is read by the child, when it is confined in its box. It runs
on the root's own interpreter, in a mount namespace that shows that root read-only and no more, so
that no child can write through ``/proc/self/exe``. It ends when its socket closes.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import resource
import select
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final

from envkit.sandbox import kernel
from envkit.sandbox.enter import Target, fork_into, kill_session, kill_when_told
from envkit.sandbox.limits import Limits
from envkit.sandbox.warm import interpreter, request, title
from envkit.sandbox.warm.program import Cold

COMMON: Final = (
    "argparse array base64 binascii bisect calendar collections concurrent.futures contextlib"
    " copy csv ctypes dataclasses datetime decimal difflib email email.parser email.policy enum"
    " fractions functools glob hashlib heapq html html.parser inspect io itertools json logging"
    " mailbox math mimetypes numbers operator os pathlib pickle platform pprint quopri random re"
    " runpy shlex shutil signal socket sqlite3 statistics string struct subprocess tempfile"
    " textwrap threading time traceback types typing unicodedata urllib.parse uuid warnings"
    " weakref xml.etree.ElementTree zipfile zlib"
).split()
"""Of the standard library: what scripts of agents and verifiers begin with."""

STARTED: Final = b"started\n"
"""What the waiter's pipe gets from a child that goes on to run a program."""

_MESSAGE: Final = 4096
_MAX_FDS: Final = 16
_layout = title.layout()
_PATIENCE_S: Final = 60.0
"""A client in a box that says nothing for so long is given up."""


def serve(startup: frozenset[str]) -> Callable[[], None]:
    """Warm up and fork; returns, in a child only, what runs the program it has become.

    ``startup`` names the modules that every interpreter has at its start.
    """
    with socket.socket(fileno=int(sys.argv[1])) as sock:
        parent = _warm(sys.argv[2:], startup)
        sock.send(b"ready")
        while True:
            ends = _next(sock)
            if ends is not None:
                sock.detach()  # the number is another's in a child
                return _become(*ends, parent)


def _warm(packages: Sequence[str], startup: frozenset[str]) -> interpreter.Parent:
    for name in (*COMMON, *packages):
        try:
            import_module(name)
        except Exception as error:
            _say(f"{name} is not warmed: {type(error).__name__}: {error}")
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        _say(f"{threads} threads after warming: no interpreter is forked")
        os._exit(1)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody here waits for a waiter
    own = {name for name in sys.modules if name.partition(".")[0] == "envkit"}
    modules = frozenset(sys.modules) - own
    tops = {name.partition(".")[0] for name in modules}
    parent = interpreter.Parent(
        modules=modules,
        shadowable=frozenset(tops - startup - set(sys.builtin_module_names)),
        unraisable=_type_of_unraisable(),
    )
    for stream in (1, 2):
        os.dup2(0, stream)  # the log is not for what runs in boxes
    gc.collect()
    gc.freeze()
    gc.disable()
    return parent


def _say(line: str) -> None:
    os.write(2, f"warmed interpreter: {line}\n".encode())


def _next(sock: socket.socket) -> tuple[int, int] | None:
    """Serve one request; its connection and its waiter's pipe in the child, nothing here."""
    try:
        data, fds, _, _ = socket.recv_fds(sock, _MESSAGE, _MAX_FDS)
    except InterruptedError:
        return None
    if not data:
        os._exit(0)
    told = json.loads(data)
    conn, life, box, *procs = fds
    target = Target(
        fd=box,
        group=_Opened(procs) if procs else None,
        limits=Limits(**told["limits"]),
        network_shared=told["network_shared"],
    )
    waiter = fork_into(
        target,
        keep=(conn, life),
        hold=(conn, life),
        oversee=lambda child: _oversee(child, conn, life),
        outlives=True,  # what runs in a box is not this parent's to end
    )
    if waiter == 0:
        return conn, life
    for fd in fds:
        os.close(fd)
    return None


class _Opened:
    """A control group of which only the open descriptors are known."""

    def __init__(self, procs: list[int]) -> None:
        self._procs = procs

    def open_procs(self) -> list[int]:
        return self._procs


def _oversee(child: int, conn: int, life: int) -> int:
    """In the waiter: say who it is, end the child when nobody waits for it, say how it ended."""
    kill_when_told(child)
    os.write(life, b"%d\n" % os.getpid())
    ended = os.pidfd_open(child)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(conn, select.POLLRDHUP)
    while (ready := dict(poll.poll())) and ended not in ready:
        kill_session(child)
        poll.unregister(conn)
    _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    own = resource.getrusage(resource.RUSAGE_SELF)
    cpu = (own.ru_utime + own.ru_stime, used.ru_utime + used.ru_stime)
    os.write(life, b"%f %f\n" % cpu)
    with socket.socket(fileno=conn) as sock:
        sock.setblocking(False)
        try:
            sock.send(request.ANSWER.pack(request.ENDED, code))
        except OSError:
            return 1  # whoever asked is gone
    return 0


def _become(fd: int, life: int, parent: interpreter.Parent) -> Callable[[], None]:
    """In the confined child: read what is asked; what cannot be done ends it without a trace."""
    try:
        with socket.socket(fileno=fd) as conn:
            conn.settimeout(_PATIENCE_S)
            body, fds = request.receive(conn)
            start = interpreter.judge(request.unpack(body), parent)
            conn.sendall(request.ANSWER.pack(request.READY, os.getpid()))
            if conn.recv(1) != request.GO:
                os._exit(0)
            os.write(life, STARTED)
            conn.detach()
            _place(fds)
        interpreter.assume(start)
        kernel.name_self(os.path.basename(interpreter.REAL))
        argv = [os.fsencode(argument) for argument in start.asked.argv]
        title.entitle(_layout, argv, start.asked.env)
        kernel.allow_dumps()
    except Cold:
        os._exit(0)
    except BaseException:
        os._exit(1)
    return start.run


def _place(fds: Sequence[int]) -> None:
    """The three streams on their numbers, and nothing beside them."""
    for number, fd in enumerate([fcntl.fcntl(fd, fcntl.F_DUPFD, 3) for fd in fds]):
        os.dup2(fd, number, inheritable=True)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))


def _type_of_unraisable() -> type[Any]:
    """CPython has no name for it."""
    seen: list[Any] = []

    class Falling:
        def __del__(self) -> None:
            raise ValueError

    def look(said: Any) -> None:
        seen.append(type(said))

    hook, sys.unraisablehook = sys.unraisablehook, look
    Falling()
    sys.unraisablehook = hook
    return seen[0]
