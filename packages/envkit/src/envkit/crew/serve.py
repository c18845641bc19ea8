# SPDX-License-Identifier: Apache-2.0
"""The process of a crew: ``python -m envkit.crew SOCKET``, its input held open by its owner.

Contract: it serves the one that listens at the socket and nobody else. Once its input ends, or the
socket does, it ends everything it started, stores what had ended, and exits. What stands in its way
is said in one line before it exits.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Final

from envkit import __version__
from envkit.agent.loaded import Voice
from envkit.agent.warm import voice_of
from envkit.crew.floor import Crew, crew_of, settings_of
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
    told,
)
from envkit.crew.place import Place, claimed, sweep
from envkit.crew.tasks import Tasks, known_tasks
from envkit.crew.types import STORE, CrewOptions, Ready
from envkit.deadline import deadline
from envkit.fault import EnvkitError, HarnessError
from envkit.preflight.begin import check_machine
from envkit.preflight.floor import ENVIRONMENTS, LOCAL, SANDBOX_LOG
from envkit.preflight.plan import KNOWN_ENVS, known
from envkit.run.rows import Ground, ground_of, keep_tokenizer
from envkit.trajectory.store import Store
from envkit.trajectory.writer import Writer

TOLD_S: Final = 60.0
"""Until it is told what to do at all."""
FLUSH_S: Final = 5.0
"""For the last lines to go out."""


class Gone(Exception):
    """Whoever this crew works for is gone, or lets it go."""


@dataclass(slots=True)
class Link:
    """The socket, and the input that says whether anybody is there."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    heeded: bool = False
    """Whoever waits for ``gone`` ends the work: it is not to be cancelled as it cleans up."""
    broke: BaseException | None = None
    """What this crew's own code failed at where nobody waits for it."""

    def say(self, message: Said) -> None:
        """One line; to somebody who is gone, nothing."""
        if not self.writer.is_closing():
            self.writer.write(line(message))

    async def hear(self) -> Told:
        """The next line. Raises Gone, and NotALine."""
        data = await self.reader.readline()
        if not data.endswith(b"\n"):
            raise Gone
        return told(data)

    def break_off(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """A callback failed: what it was to say would be waited for without end."""
        loop.default_exception_handler(context)
        if "handle" in context and "exception" in context:
            self.broke = context["exception"]
            self.gone.set()

    async def close(self) -> None:
        """Once what was said is out."""
        with contextlib.suppress(OSError, EnvkitError):
            async with deadline("flush", FLUSH_S):
                await self.writer.drain()
        self.writer.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known before anything is started."""

    tasks: Tasks
    voice: Voice
    ground: Ground


def serve(path: str) -> int:
    """Serve whoever listens there; the status to exit with.

    Not by ``asyncio.run``: that would wait for a thread that builds what nobody wants any more.
    """
    return asyncio.new_event_loop().run_until_complete(_serve_at(path))


async def _serve_at(path: str) -> int:
    reader, writer = await asyncio.open_unix_connection(path, limit=LINE_MOST)
    link = Link(reader, writer)
    asyncio.get_running_loop().set_exception_handler(link.break_off)
    working = asyncio.create_task(_work(link))
    with _owned(link, working):
        try:
            await working
        except (Gone, asyncio.CancelledError, ConnectionError):
            return 0
        except EnvkitError as error:
            link.say(Failed(line=str(error)))
            return 1
        else:
            return 0
        finally:
            await link.close()


@contextlib.contextmanager
def _owned(link: Link, working: asyncio.Task[None]) -> Generator[None]:
    """End the work when this process's input ends."""
    loop = asyncio.get_running_loop()

    def look() -> None:
        if not os.read(0, 4096):
            loop.remove_reader(0)
            link.gone.set()
            if not link.heeded:
                working.cancel()

    loop.add_reader(0, look)
    try:
        yield
    finally:
        loop.remove_reader(0)


async def _work(link: Link) -> None:
    link.say(Hello(version=__version__))
    options = await _told(link)
    known("env", options.env, KNOWN_ENVS)
    check_machine(options.env)
    with claimed(options.root.resolve(), options.run_token) as place:
        ready = await asyncio.to_thread(_prepared, options, place)
        with Writer.open(place.root / STORE, clock=time.monotonic) as writer:
            await _serve(link, options, place, ready, writer)


async def _told(link: Link) -> CrewOptions:
    async with deadline("told", TOLD_S):
        match await link.hear():
            case Open(options=options):
                return options
            case odd:
                raise NotALine(f"{odd} before it was opened")


def _prepared(options: CrewOptions, place: Place) -> Known:
    """Everything that takes long; an error is one line before anything runs."""
    settings = settings_of(options)
    voice = voice_of(settings)
    keep_tokenizer(place.root, voice)
    local = ENVIRONMENTS.get(options.env, options.env) == LOCAL
    tasks = known_tasks(options.tasks, options.budgets, local=local)
    return Known(tasks=tasks, voice=voice, ground=ground_of(settings, voice, {}, ""))


async def _serve(
    link: Link, options: CrewOptions, place: Place, known: Known, writer: Writer
) -> None:
    store = Store(place.root / STORE)
    swept = await asyncio.to_thread(sweep, place, store, options.keep_trials)
    crew = crew_of(options, place, known.tasks, writer, known.ground, link.say)
    template = known.voice.template
    async with crew.open() as storing:
        link.say(
            Ready(
                run_token=place.run_token,
                pid=os.getpid(),
                version=__version__,
                store=str(store.directory),
                rows=len(store),
                cut_off=swept.cut_off,
                resumable=swept.resumable,
                tokenizer_digest=template.tokenizer_digest,
                template_digest=template.template_digest,
                template_family=template.family,
                tasks=known.tasks.digests,
            )
        )
        why = await _until_over(link, crew, storing)
    raise why


async def _until_over(link: Link, crew: Crew, storing: asyncio.Task[None]) -> BaseException:
    """Carry out orders until there can be none; why there can be none."""
    link.heeded = True
    hearing = asyncio.create_task(_orders(link, crew))
    lost = asyncio.create_task(crew.floor.lost.wait())
    gone = asyncio.create_task(link.gone.wait())
    await asyncio.wait({hearing, storing, lost, gone}, return_when=asyncio.FIRST_COMPLETED)
    ended = next((each for each in (storing, hearing) if each.done()), None)
    for task in (hearing, lost, gone):
        task.cancel()
    if ended is not None:
        return ended.exception() or Gone()
    if link.gone.is_set():
        return link.broke or Gone()
    said = crew.place.root / SANDBOX_LOG
    return HarnessError(f"{crew.place.root}: its fork server is gone; what it said: {said}")


async def _orders(link: Link, crew: Crew) -> None:
    while True:
        match await link.hear():
            case Begin(order=order):
                crew.begin(order)
            case Cancel(trial=trial):
                crew.cancel(trial)
            case Open():
                raise NotALine("a crew is opened once")
