# SPDX-License-Identifier: Apache-2.0
"""A vLLM server as a child of this process: started by a command, waited for, ended.

vLLM lives in an environment of its own, so the command names that one's interpreter. The server
gives logprobs of the distribution it samples from, and ids without text.

Contract: inside `serving` the server answers; afterwards nothing of it is left, also where this
process is killed (`keeper`). What it printed is in the log, and its last lines are in the error
where it does not start.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from envkit.agent.engine import keeper
from envkit.agent.engine.health import LOOPBACK, answers
from envkit.deadline import DEFAULT_BUDGETS, Budgets, deadline
from envkit.fault import EngineError

_LOOK_AGAIN_S: Final = 0.5
"""Starting takes tens of seconds."""
_LAST_LINES: Final = 20
"""Of the log, in an error."""
_KILLED_S: Final = 10.0
"""For the keeper to kill what did not end kindly, and to end itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """What to serve, and by whom."""

    model: Path
    """A directory as Hugging Face lays it out."""
    python: Path
    """Interpreter of the environment that has vLLM."""
    name: str = "policy"
    """It is served by."""
    host: str = LOOPBACK
    """Address of this machine that it listens on."""
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
    host: str
    port: int
    model: str
    """Name it is served by."""
    log: Path
    pid: int
    """Of the keeper, which leads the server's group."""


@asynccontextmanager
async def serving(options: ServeOptions, log: Path) -> AsyncGenerator[Served]:
    """Start a server, wait until it answers, end it.

    Raises:
        EngineError: it ended before it answered, or cannot be started.
        DeadlineExceeded: it did not answer in ``Budgets.engine_start_s``.
    """
    with _bound(options.host) as port:
        child = _start(options, port, log)
    try:
        async with deadline("engine_start", options.budgets.engine_start_s):
            while not answers(port, options.host):
                if child.poll() is not None:
                    raise EngineError(f"vllm: ended with status {child.returncode}: {_tail(log)}")
                await asyncio.sleep(_LOOK_AGAIN_S)
        yield Served(
            url=f"http://{options.host}:{port}",
            host=options.host,
            port=port,
            model=options.name,
            log=log,
            pid=child.pid,
        )
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
        *("--host", options.host, "--port", str(port), "--dtype", options.dtype),
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
    if not options.python.exists():
        raise EngineError(f"{options.python}: there is no such interpreter")
    log.parent.mkdir(parents=True, exist_ok=True)
    kept = [sys.executable, "-I", "-S", keeper.__file__, str(options.budgets.engine_stop_s)]
    with log.open("wb") as out:
        return subprocess.Popen(
            [*kept, *command(options, port)],
            env=env,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


@contextlib.contextmanager
def _bound(host: str) -> Generator[int]:
    """A free port, kept from others until the server is started."""
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind((host, 0))
        yield kept.getsockname()[1]


def _end(child: subprocess.Popen[bytes], seconds: float) -> None:
    """Let go of it, and wait until nothing of it is left."""
    assert child.stdin is not None
    child.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(seconds + _KILLED_S)
    if child.poll() is None or child.returncode < 0:  # the keeper is held up, or was killed
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _tail(log: Path) -> str:
    lines = log.read_text("utf-8", "replace").splitlines()
    return " | ".join(line.strip() for line in lines[-_LAST_LINES:] if line.strip())
