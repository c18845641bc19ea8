# SPDX-License-Identifier: Apache-2.0
"""A vLLM server as a child of this process: started by a command, waited for, ended.

vLLM lives in an environment of its own, so the command names that one's interpreter. The server
gives logprobs of the distribution it samples from, and ids without text.

Contract: inside `serving` the server answers; afterwards nothing of it is left, and it ends too
when this process is killed. What it printed is in the log, and its last lines are in the error
where it does not start.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from envkit.agent.engine.health import answers
from envkit.deadline import DEFAULT_BUDGETS, Budgets, deadline
from envkit.fault import EngineError
from envkit.sandbox.kernel import end_with_parent

_LOOK_AGAIN_S: Final = 0.5
"""Starting takes tens of seconds."""
_LAST_LINES: Final = 20
"""Of the log, in an error."""
_SIGNALS: Final = (signal.SIGTERM, signal.SIGKILL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """What to serve, and by whom."""

    model: Path
    """A directory as Hugging Face lays it out."""
    python: Path
    """Interpreter of the environment that has vLLM."""
    name: str = "policy"
    """It is served by."""
    context_tokens: int = 0
    """0 for all that the model takes."""
    dtype: str = "auto"
    prefix_cache: bool = True
    kv_cache_gib: int = 1
    """On a CPU; on a GPU vLLM takes what is free."""
    eager: bool = False
    """Compile nothing: starts in half the time, samples slower on a GPU."""
    arguments: tuple[str, ...] = ()
    """More of vLLM's own, at the end."""
    budgets: Budgets = DEFAULT_BUDGETS


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server that answers."""

    url: str
    model: str
    """Name it is served by."""
    log: Path
    pid: int


@asynccontextmanager
async def serving(options: ServeOptions, log: Path) -> AsyncGenerator[Served]:
    """Start a server, wait until it answers, end it.

    Raises:
        EngineError: it ended before it answered, or cannot be started.
        DeadlineExceeded: it did not answer in ``Budgets.engine_start_s``.
    """
    with _bound() as port:
        child = _start(options, port, log)
    try:
        async with deadline("engine_start", options.budgets.engine_start_s):
            while not answers(port):
                if child.poll() is not None:
                    raise EngineError(f"vllm: ended with status {child.returncode}: {_tail(log)}")
                await asyncio.sleep(_LOOK_AGAIN_S)
        url = f"http://127.0.0.1:{port}"
        yield Served(url=url, model=options.name, log=log, pid=child.pid)
    finally:
        _end(child, options.budgets.engine_stop_s)


def command(options: ServeOptions, port: int) -> list[str]:
    """The command line of the server. vLLM's own program needs its GPU distribution."""
    flags = {
        "--enforce-eager": options.eager,
        "--no-enable-prefix-caching": not options.prefix_cache,
    }
    context = ["--max-model-len", str(options.context_tokens)] if options.context_tokens else []
    return [
        *(str(options.python), "-m", "vllm.entrypoints.openai.api_server"),
        *("--model", str(options.model), "--served-model-name", options.name),
        *("--host", "127.0.0.1", "--port", str(port), "--dtype", options.dtype),
        *("--enable-scale-out", "--logprobs-mode", "processed_logprobs"),
        *("--generation-config", "vllm", "--return-tokens-as-token-ids"),
        *("--disable-uvicorn-access-log", *context),
        *(flag for flag, wanted in flags.items() if wanted),
        *options.arguments,
    ]


def _start(options: ServeOptions, port: int, log: Path) -> subprocess.Popen[bytes]:
    env = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "VLLM_CPU_CI_ENV": "1" if options.eager else "0",
        "VLLM_CPU_KVCACHE_SPACE": str(options.kv_cache_gib),
        "VLLM_NO_USAGE_STATS": "1",
    }
    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        with log.open("wb") as out:
            return subprocess.Popen(
                command(options, port),
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=end_with_parent,  # it runs no Python that another thread could hold up
            )
    except OSError as error:
        raise EngineError(f"{options.python}: cannot be started: {error.strerror}") from error


@contextlib.contextmanager
def _bound() -> Generator[int]:
    """A free port, kept from others until the server is started."""
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        yield kept.getsockname()[1]


def _end(child: subprocess.Popen[bytes], seconds: float) -> None:
    """End it and all it started, kindly first."""
    for number in _SIGNALS:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        until = time.monotonic() + seconds
        while _group_lives(child) and time.monotonic() < until:
            time.sleep(0.05)


def _group_lives(child: subprocess.Popen[bytes]) -> bool:
    """Whether one of its group still runs; what has ended and nobody has reaped does not count."""
    child.poll()
    return any(_running_in(child.pid, each) for each in Path("/proc").glob("[0-9]*/stat"))


def _running_in(group: int, stat: Path) -> bool:
    try:
        state, _, its_group = stat.read_bytes().rpartition(b")")[2].split()[:3]
    except (OSError, ValueError):  # it went away
        return False
    return int(its_group) == group and state != b"Z"


def _tail(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").splitlines()
    return " | ".join(line.strip() for line in lines[-_LAST_LINES:] if line.strip())
