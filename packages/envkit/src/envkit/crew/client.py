# SPDX-License-Identifier: Apache-2.0
"""The side of whoever begins trials: a crew as a child of this process.

Contract: inside `open_crew` the crew is ready; afterwards it is gone, with all that it started, and
so it is where this process is killed: the crew's input ends then. Every wait has a deadline, and
what went wrong is told with the last lines that the crew left. Nothing here needs Harbor or MCP.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from envkit.crew.lines import (
    LINE_MOST,
    Begin,
    Cancel,
    Failed,
    Hello,
    NotALine,
    Open,
    Said,
    Told,
    line,
    said,
)
from envkit.crew.types import (
    LOG,
    CrewEvent,
    CrewLost,
    CrewOptions,
    CrewRefused,
    Notice,
    Ready,
    TrialOrder,
)
from envkit.deadline import DeadlineExceeded, deadline

HELLO_S: Final = 60.0
"""An interpreter that imports envkit from a cold disk, on a loaded machine."""
TELL_S: Final = 30.0
"""A line is small and a crew reads at once; one that does not is lost."""
_LOOK_S: Final = 0.05
_ENDS_S: Final = 2.0
"""From a socket that is closed to the end of the process that held it."""
_LAST_LINES: Final = 12
"""Of its log, in an error."""
_OTHERS: Final = ("PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "VIRTUAL_ENV")
"""What names another interpreter's modules."""


class Crew:
    """A crew that is open; made by `open_crew`."""

    def __init__(self, options: CrewOptions, ready: Ready, link: _Link) -> None:
        self.ready: Final = ready
        """What it said as it opened."""
        self._options = options
        self._link = link

    async def begin(self, order: TrialOrder) -> None:
        """Order a trial; what becomes of it is an event.

        Raises:
            NotALine: its settings are no JSON.
            CrewLost: the crew is gone.
        """
        await self._link.tell(Begin(order=order))

    async def cancel(self, trial_id: str) -> None:
        """Have a trial ended; that it has is an event, unless it had ended before.

        Raises:
            CrewLost: the crew is gone.
        """
        await self._link.tell(Cancel(trial=trial_id))

    async def events(self) -> AsyncIterator[CrewEvent]:
        """What it says, as it says it, until this crew is closed; for one listener.

        Raises:
            CrewLost: the crew is gone, or was silent for too long.
        """
        while not self._link.closed:
            match await self._heard():
                case None:
                    return
                case Failed(line=why):
                    raise CrewLost(why)
                case Hello() | Ready() as odd:
                    raise CrewLost(f"{self._link.place}: said {odd} out of turn")
                case event:
                    yield event

    async def _heard(self) -> Said | None:
        """None where this side has hung up meanwhile."""
        try:
            return await self._link.hear("silence", self._options.silence_s)
        except CrewLost:
            if self._link.closed:
                return None
            raise


@asynccontextmanager
async def open_crew(options: CrewOptions) -> AsyncGenerator[Crew]:
    """Start a crew and wait until it is ready; at the end of it, end all that it started.

    Raises:
        CrewRefused: it cannot be opened as was asked.
        CrewLost: it died as it opened, or was not ready in time.
    """
    with contextlib.ExitStack() as stack:
        with _socket() as (listening, path):
            process = stack.enter_context(_started(options, path))
            link = await _linked(options, process, listening)
        try:
            yield Crew(options, await _opened(options, link), link)
        finally:
            link.close()
            await _end(process, options.close_s)


async def _opened(options: CrewOptions, link: _Link) -> Ready:
    try:
        await link.hear("hello", HELLO_S)
        await link.tell(Open(options=options))
        return await _ready(options, link)
    except NotALine as error:
        raise CrewRefused(f"{options.python}: {error}") from error


async def _ready(options: CrewOptions, link: _Link) -> Ready:
    until = time.monotonic() + options.open_s
    while True:
        match await link.hear("open", max(0.0, until - time.monotonic())):
            case Ready() as ready:
                return ready
            case Failed(line=why):
                raise CrewRefused(why)
            case Notice():
                continue
            case odd:
                raise CrewLost(f"{link.place}: said {odd} before it was ready")


class _Link:
    """The socket of one crew, and how to tell what became of it."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        root: Path,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._telling = asyncio.Lock()
        self._root = root
        self.closed = False

    @property
    def place(self) -> str:
        """Whose words these are."""
        return f"crew of {self._root}"

    async def tell(self, message: Told) -> None:
        """One line, taken by the other end's kernel when this returns."""
        try:
            async with deadline("tell", TELL_S), self._telling:
                if self._writer.is_closing():  # uvloop's would say so by a RuntimeError
                    raise ConnectionResetError("the line to it is closed")
                self._writer.write(line(message))
                await self._writer.drain()
        except (OSError, DeadlineExceeded) as error:
            raise self._lost(str(error)) from error

    async def hear(self, op: str, seconds: float) -> Said:
        """The next line; ``op`` names the bound."""
        try:
            async with deadline(op, seconds):
                data = await self._reader.readline()
        except (OSError, ValueError, DeadlineExceeded) as error:  # ValueError: a line without end
            raise self._lost(str(error)) from error
        if not data.endswith(b"\n"):
            raise self._lost(await self._status())
        return said(data)

    def close(self) -> None:
        """Hang up."""
        self.closed = True
        self._writer.close()

    async def _status(self) -> str:
        """How its process ended, which is just about to."""
        await ended_within(self._process, _ENDS_S)
        return ending(self._process)

    def _lost(self, why: str) -> CrewLost:
        return CrewLost(f"{self.place}: {why}{last_lines(self._root / LOG)}")


@contextlib.contextmanager
def _socket() -> Generator[tuple[socket.socket, Path]]:
    """A socket for one crew to connect to; its path is short, only this user's, and soon gone."""
    home = Path(tempfile.mkdtemp(prefix="envkit-crew-"))
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.setblocking(False)
            listening.bind(str(home / "s"))
            listening.listen(1)
            yield listening, home / "s"
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def _started(options: CrewOptions, path: Path) -> Generator[subprocess.Popen[bytes]]:
    """The process; its input is held open, so that it ends when this one does."""
    try:
        options.root.mkdir(parents=True, exist_ok=True)
        with (options.root / LOG).open("ab") as log:
            process = subprocess.Popen(
                [str(options.python), "-P", "-m", "envkit.crew", str(path)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env=_environ(options),
                start_new_session=True,
            )
    except OSError as error:
        where = error.filename or options.root
        raise CrewRefused(
            f"{where}: {error.strerror}; name the interpreter that has envkit[run], and a root "
            "that this user can write"
        ) from error
    try:
        yield process
    finally:
        _kill(process)


def _environ(options: CrewOptions) -> dict[str, str]:
    if options.environ is not None:
        return dict(options.environ)
    return {name: value for name, value in os.environ.items() if name not in _OTHERS}


async def _linked(
    options: CrewOptions, process: subprocess.Popen[bytes], listening: socket.socket
) -> _Link:
    """Its connection, which it makes first of all."""
    sock = await _accepted(options, process, listening)
    reader, writer = await asyncio.open_unix_connection(sock=sock, limit=LINE_MOST)
    return _Link(process, options.root, reader, writer)


async def _accepted(
    options: CrewOptions, process: subprocess.Popen[bytes], listening: socket.socket
) -> socket.socket:
    until = time.monotonic() + HELLO_S
    while process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(BlockingIOError):
            return listening.accept()[0]
        await asyncio.sleep(_LOOK_S)
    why = f"{options.python}: {ending(process)}{last_lines(options.root / LOG)}"
    raise CrewRefused(f"{why}; name the interpreter of an environment that has envkit[run]")


async def _end(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Let go of it, and wait until it has ended all it started."""
    assert process.stdin is not None
    process.stdin.close()
    await ended_within(process, seconds)


async def ended_within(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait for the end of a process, so long and no longer."""
    for _ in range(int(seconds / _LOOK_S)):
        if process.poll() is not None:
            return
        await asyncio.sleep(_LOOK_S)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Whatever is still there; what it started ends with it."""
    assert process.stdin is not None
    process.stdin.close()
    if process.poll() is None:
        process.kill()
    process.wait()


def ending(process: subprocess.Popen[bytes]) -> str:
    """How a process ended, in words."""
    code = process.poll()
    if code is None:
        return "did not answer in time"
    return f"ended with signal {-code}" if code < 0 else f"ended with status {code}"


def last_lines(log: Path) -> str:
    """The end of a log, behind a colon; nothing where there is none."""
    with contextlib.suppress(OSError):
        lines = log.read_text("utf-8", "replace").splitlines()[-_LAST_LINES:]
        if kept := [each.strip() for each in lines if each.strip()]:
            return ": " + " | ".join(kept)
    return ""
