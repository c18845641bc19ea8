# SPDX-License-Identifier: Apache-2.0
"""``envkit proxy``: serve until interrupted, then store what is open.

Contract: nothing begins where engine, tokenizer or directory cannot be used. Ctrl-C and SIGTERM end
the serving and store every conversation; what could not be stored is said, a line each, and the
exit code is 1. A second signal changes nothing: storing takes seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp

from envkit.agent.engine import EngineClient, EngineOptions, open_engine
from envkit.agent.loaded import voice
from envkit.deadline import DEFAULT_BUDGETS, Budgets, DeadlineExceeded
from envkit.fault import EngineError, HarnessError
from envkit.proxy.branch import Mouth
from envkit.proxy.crowd import Crowd
from envkit.proxy.desk import Desk
from envkit.proxy.keep import Keep
from envkit.proxy.rows import Whose
from envkit.proxy.server import build_app
from envkit.retry import Backoff
from envkit.trajectory.types import Sampling

ONCE: Final = Backoff(tries=1)
"""A fault is the client's to try again: it alone knows for how long it can wait."""
STOP_S: Final = 5
"""Answers that are under way get so long once the proxy was told to stop."""
KEEP_ALIVE_S: Final = 75
"""Longer than clients keep a connection that is idle: neither closes what the other just used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What was asked for."""

    engine: str
    tokenizer: Path
    out: Path
    model: str = ""
    port: int = 8100
    family: str = ""
    template: str = ""
    variables: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the chat template takes beside the messages, such as ``enable_thinking``."""
    task: str = "proxy"
    """Of conversations whose client names none."""
    harness: str = ""
    idle_s: float = 1800.0
    """After which a conversation is over: a command of half an hour is longer than any turn's."""
    conversations: int = 1024
    """That are open at once; each takes 70 bytes a token."""
    sampling: Sampling = field(default_factory=Sampling)
    """Of parameters that a client leaves out."""
    budgets: Budgets = DEFAULT_BUDGETS


def proxy(options: Options) -> int:
    """Serves until interrupted; the exit code.

    Raises:
        EnvkitError: it cannot begin.
    """
    with _listening(options.port) as listening:
        return asyncio.run(_proxy(options, listening))


def _listening(port: int) -> socket.socket:
    try:
        listening = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise HarnessError(f"--port {port}: {error.strerror}; choose another, or 0") from error
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # inherited by connections
    return listening


async def _proxy(options: Options, listening: socket.socket) -> int:
    async with opened(options) as desk:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        print(f"{address}/t/NAME/v1", file=sys.stderr, flush=True)
        await _serve(build_app(desk, options.sampling), desk, listening)
        lost = await desk.end_all("the proxy was stopped")
        for line in lost:
            print(f"envkit: {line}", file=sys.stderr)
        print(f"stored {desk.stored} trajectories in {options.out}", file=sys.stderr, flush=True)
        return 1 if lost else 0


@contextlib.asynccontextmanager
async def opened(options: Options) -> AsyncGenerator[Desk]:
    """The parts, in the order in which they can fail: tokenizer, engine, directory.

    Raises:
        EnvkitError: one of them cannot be used.
    """
    speaks = voice(
        options.tokenizer,
        family=options.family,
        template=options.template,
        variables=options.variables,
    )
    asked = EngineOptions(
        url=options.engine,
        model=options.model,
        vocabulary=speaks.template.vocabulary_size,
        budgets=options.budgets,
        backoff=ONCE,
    )
    async with _engine(asked) as engine:
        with Keep.open(options.out, speaks.template) as keep:
            mouth = Mouth(engine=engine, voice=speaks)
            crowd = Crowd(mouth=mouth, most=options.conversations, ended=keep.has)
            whose = Whose(task=options.task, harness=options.harness)
            yield Desk(crowd=crowd, keep=keep, whose=whose, idle_s=options.idle_s)


@contextlib.asynccontextmanager
async def _engine(asked: EngineOptions) -> AsyncGenerator[EngineClient]:
    """What is wrong before it serves is said with the option that names it."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            engine = await stack.enter_async_context(open_engine(asked))
        except (EngineError, DeadlineExceeded) as error:
            raise HarnessError(f"--engine {asked.url}: {error}") from error
        yield engine


class _Server(uvicorn.Server):
    """Leaves signals to us."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def _serve(app: ASGIApp, desk: Desk, listening: socket.socket) -> None:
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=STOP_S,
    )
    server = _Server(config)

    def stop() -> None:
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    idle = asyncio.create_task(desk.end_idle())
    try:
        await server.serve(sockets=[listening])
    finally:
        idle.cancel()
        await asyncio.wait((idle,))
