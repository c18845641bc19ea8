# SPDX-License-Identifier: Apache-2.0
"""A trial's way to its fork server: inherited when preflight forked it, else started on demand.

Contract: ``session()`` answers with the one session of this process. ``harbor run --env
envkit.sandbox.local:LocalEnvironment`` works too: then a fork server is started for this process
and ends with it.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import itertools
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from envkit.deadline import deadline
from envkit.fault import SandboxUnavailable
from envkit.sandbox.channel import Channel, EventSink
from envkit.sandbox.prepare import Prepared, prepare
from envkit.sandbox.reaper import birth, reap_run
from envkit.sandbox.spec import Preload, ServerSettings
from envkit.sandbox.stage import OWNER, STAGES

READY_S: Final = 60.0
"""Importing Harbor and the servers takes 3 s; on a loaded machine with cold files, thirty."""

_STOP_S: Final = 30.0
_KEPT: Final = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "PYTHONPATH",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "ENVKIT_CACHE",
)
"""Environment of the fork server: its memory is copied into gateways, so no key may be in it."""

Handler = Callable[[str, str], None]


@dataclass(slots=True)
class Session:
    """A channel to the fork server, and what was prepared for this trial's task."""

    stage: Path
    prepared: dict[Path, Prepared] = field(default_factory=dict[Path, Prepared])
    go: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the barrier of the run is lifted."""
    handlers: dict[str, Handler] = field(default_factory=dict[str, Handler])
    """By box name: called with an event and its error; see `envkit.sandbox.lodging.Announce`."""
    _channel: Channel | None = None
    _names: Any = field(default_factory=lambda: itertools.count(1))

    def connect(self, sock: socket.socket) -> Channel:
        """Take the socket of this trial's channel; call in the running loop."""
        self._channel = Channel(sock, on_event=self._event, on_close=self._lost)
        return self._channel

    @property
    def channel(self) -> Channel:
        """The connected channel."""
        assert self._channel is not None, "connect() comes first"
        return self._channel

    def box_name(self, role: str) -> str:
        """A name for one more box of this trial."""
        return f"{role}{next(self._names)}"

    def prepare(self, task_dir: Path) -> Prepared:
        """What was prepared for the task, now if not before."""
        task_dir = task_dir.resolve()
        if task_dir not in self.prepared:
            self.prepared[task_dir] = prepare(task_dir)
        return self.prepared[task_dir]

    async def turn(self, rank: int) -> float:
        """Wait until this trial may work, see `envkit.sandbox.turns`; seconds waited."""
        return float((await self.channel.ask("turn", rank=rank))["waited_s"])

    def rest(self) -> None:
        """This trial waits for something else: another may work."""
        self.channel.tell("rest")

    def _event(self, message: dict[str, Any]) -> None:
        if message["event"] == "go":
            self.go.set()
        elif handler := self.handlers.get(message.get("box", "")):
            handler(message["event"], message["error"])

    def _lost(self) -> None:
        for handler in list(self.handlers.values()):
            handler("box_exit", "SandboxDied")


_current: Session | None = None


def adopt(session: Session) -> None:
    """Make this the session of the process."""
    global _current
    _current = session


async def turn(rank: int) -> float:
    """Wait until this process's trial may work on this machine's cores; seconds waited.

    ``rank`` says how far it is. Nobody waits where no run bounds its trials.
    """
    return await _current.turn(rank) if _current else 0.0


def rest() -> None:
    """This process's trial waits for something that is not this machine: let another work."""
    if _current:
        _current.rest()


async def session() -> Session:
    """The session of this process; starts a fork server when there is none.

    Raises:
        SandboxUnavailable: this machine allows no boxes.
    """
    if _current is None:
        server = await _start(secrets.token_hex(8), warm=True)
        atexit.register(_end_at_exit, server)
        adopt(await _attach(server))
    assert _current is not None
    return _current


@contextlib.asynccontextmanager
async def own_session(
    *, warm: bool = True, cgroups: bool = True, roots: Sequence[Path] = ()
) -> AsyncGenerator[Session]:
    """A fork server for one trial that runs in this very process."""
    async with forkserver(warm=warm, cgroups=cgroups, roots=roots) as server:
        mine = await _attach(server)
        yield mine
        mine.channel.close()


async def _attach(server: Server) -> Session:
    """A channel of a trial whose boxes the server keeps, though it did not fork it."""
    ours, theirs = socket.socketpair()
    await server.channel.ask("attach", [theirs.fileno()], trial="own")
    theirs.close()
    mine = Session(server.stage)
    mine.connect(ours)
    mine.go.set()
    return mine


@dataclass(frozen=True, slots=True)
class Server:
    """A running fork server."""

    channel: Channel
    stage: Path
    process: subprocess.Popen[bytes]
    run: str
    cgroup: int
    """Version of the control groups in use; 0 when only rlimits hold."""


@contextlib.asynccontextmanager
async def forkserver(
    *,
    run: str | None = None,
    warm: bool = True,
    cgroups: bool = True,
    on_event: EventSink | None = None,
    log: Path | None = None,
    tmp: Path | None = None,
    roots: Sequence[Path] = (),
    turns: int = 0,
    preload: Preload = (),
) -> AsyncGenerator[Server]:
    """Start a fork server; on leaving, everything it started is dead. ``log`` gets its complaints.

    ``tmp`` is where it and its trials put temporary files; a box has its own ``/tmp``. The
    interpreters of ``roots`` are warm when it is ready, and ``preload`` is done. ``turns`` bounds
    how many trials work at once, 0 for all.

    Raises:
        SandboxUnavailable: it ended instead of saying it is ready; its last line says why.
        DeadlineExceeded: it was not ready in READY_S.
    """
    server = await _start(
        run or secrets.token_hex(8),
        warm=warm,
        cgroups=cgroups,
        on_event=on_event,
        log=log,
        tmp=tmp,
        roots=roots,
        turns=turns,
        preload=preload,
    )
    try:
        yield server
    finally:
        server.channel.close()
        await _end(server.process)
        if server.process.returncode:  # it was killed, and took nothing away
            await asyncio.to_thread(reap_run, server.run)
        _remove_stage(server.stage)


async def _start(
    run: str,
    *,
    warm: bool,
    cgroups: bool = True,
    on_event: EventSink | None = None,
    log: Path | None = None,
    tmp: Path | None = None,
    roots: Sequence[Path] = (),
    turns: int = 0,
    preload: Preload = (),
) -> Server:
    stage = _make_stage(run)
    ours, theirs = socket.socketpair()
    settings = ServerSettings(
        run=run,
        stage=stage,
        warm=warm,
        cgroups=cgroups,
        roots=tuple(roots),
        turns=turns,
        preload=tuple(preload),
    )
    ready: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    def hear(message: dict[str, Any]) -> None:
        if message["event"] == "ready" and not ready.done():
            ready.set_result(message)
        elif on_event:
            on_event(message)

    with _complaints(log) as complaints:
        process = _spawn(theirs, settings, complaints.fileno(), tmp)
        theirs.close()
        channel = Channel(ours, on_event=hear, on_close=lambda: _give_up(ready))
        try:
            async with deadline("start", READY_S):
                said = await ready
        except BaseException as error:
            channel.close()
            await _end(process)
            _remove_stage(stage)
            complaints.seek(0)
            if isinstance(error, _ServerEnded):
                said = complaints.read().decode(errors="replace")
                raise SandboxUnavailable(_last_line(said, process.returncode)) from None
            raise
    return Server(channel, stage, process, run, int(said["cgroup"]))


def _complaints(log: Path | None) -> IO[bytes]:
    return log.open("w+b") if log else tempfile.TemporaryFile()


def _end_at_exit(server: Server) -> None:
    """No loop runs any more: the server sees its channel close when we wait for it to end."""
    server.channel.hang_up()
    try:
        server.process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        server.process.kill()
        server.process.wait()
    _remove_stage(server.stage)


class _ServerEnded(Exception):
    """The server ended before it was ready."""


def _give_up(ready: asyncio.Future[Any]) -> None:
    if not ready.done():
        ready.set_exception(_ServerEnded())


def _spawn(
    theirs: socket.socket, settings: ServerSettings, stderr: int, tmp: Path | None
) -> subprocess.Popen[bytes]:
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    env |= {
        "ENVKIT_RUN": settings.run,
        "HARBOR_TELEMETRY": "0",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    if tmp is not None:
        env["TMPDIR"] = str(tmp)
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "envkit.sandbox.forkserver",
            str(theirs.fileno()),
            json.dumps(settings.to_dict()),
        ],
        env=env,
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=stderr,
        stderr=stderr,
        start_new_session=True,
    )


async def _end(process: subprocess.Popen[bytes]) -> None:
    """It ends by itself when its channel closes; after a while it is killed."""
    for _ in range(int(_STOP_S * 50)):
        if process.poll() is not None:
            return
        await asyncio.sleep(0.02)
    process.kill()
    process.wait()


def _make_stage(run: str) -> Path:
    """An empty directory that the boxes' user can reach, marked with its owner."""
    stage = STAGES / f"envkit-run-{run}"
    stage.mkdir(mode=0o755)
    (stage / OWNER).write_text(f"{os.getpid()} {birth(os.getpid())}")
    return stage


def _remove_stage(stage: Path) -> None:
    for entry in (stage / OWNER, *stage.glob("*.sock")):
        entry.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        stage.rmdir()


def _last_line(text: str, status: int) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    last = lines[-1] if lines else f"the sandbox server ended with {status} and without a word"
    return last.removeprefix("envkit.fault.errors.SandboxUnavailable: ")
