# SPDX-License-Identifier: Apache-2.0
"""The warmed process whose copies trials and gateways are.

Contract: one thread, everything imported and frozen, nothing of any task in its memory, because
gateways are copies of it. It is asked by the fork server alone, over one channel, and ends with
it; its children end with it. The fork server itself stays small: what enters boxes for commands
and files is a copy of that one, at a fraction of the cost.

Operations: ``trial`` (fork one; answers when it has ended), ``gateway`` (fork one into a cell;
answers with its pid, which stays its own until ``ended``, which answers when it has ended),
``stop`` (kill a trial).
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from typing import Any, Final, NoReturn

import orjson

from envkit.sandbox import cell, kernel, loopio
from envkit.sandbox.cell import CellSpec
from envkit.sandbox.channel import Channel
from envkit.sandbox.scene import Scenes
from envkit.sandbox.spec import Preload

TRIAL_MAIN: Final = "envkit.trial.child:main"
"""What a forked trial runs: ``main(spec, socket)``."""

GATEWAY_MAIN: Final = "envkit.servers.boxed:main"
"""What a forked gateway runs in its box: ``main(config, mcp, data, executor)``."""

WARM: Final = (
    "envkit.servers.gateway:warm",
    "envkit.servers.boxed:warm",
    "envkit.trial.child:warm",
)


def main(sock: socket.socket, *, warm: bool, preload: Preload = ()) -> None:
    """Warm up, then fork on request until the channel closes."""
    if warm:
        _warm(preload)
    asyncio.run(_serve(sock))


async def _serve(sock: socket.socket) -> None:
    done = asyncio.Event()
    trials: dict[str, int] = {}
    scenes = Scenes()

    async def trial(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        pid = _fork_trial(request, *fds)
        trials[request["trial"]] = pid
        ended = await loopio.wait_child(pid)
        trials.pop(request["trial"], None)
        return asdict(ended)

    async def gateway(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        return {"pid": _fork_gateway(CellSpec.from_dict(request["cell"]), scenes, fds)}

    async def ended(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        return asdict(await loopio.wait_child(request["pid"]))

    async def stop(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        pid = trials.get(request["trial"])
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
        return {"running": pid is not None}

    operations = {"trial": trial, "gateway": gateway, "ended": ended, "stop": stop}
    Channel(sock, operations, on_close=done.set).tell("ready")
    await done.wait()
    for pid in trials.values():
        os.kill(pid, signal.SIGKILL)


def _warm(preload: Preload) -> None:
    """Do once what every child needs, then freeze it so that children share the pages."""
    _import_filelock()
    resolve(GATEWAY_MAIN)
    for path in WARM:
        resolve(path)()
    for path, named in preload:
        resolve(path)(**named)
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise RuntimeError(f"{threads} threads after warming; a fork of this process could hang")
    tempfile.tempdir = None  # warming looked it up; a box has another, its own /tmp
    gc.collect()
    gc.freeze()
    gc.disable()


def _collect_from_here() -> None:
    """In a copy: what the nursery has kept of others since it froze is no garbage of this one.

    A collection would write to all of it, and so to a copy of it.
    """
    gc.freeze()
    gc.enable()


def _import_filelock() -> None:
    """Harbor's libraries import it. What it does at each fork writes to 0.6 MiB of every child.

    It does so for locks that are held across a fork, and here are none; it leaves that out where
    Python has no such hooks. Modules that need hooks of their own are imported before.
    """
    for name in ("concurrent.futures.thread", "logging", "multiprocessing.util", "random"):
        import_module(name)
    hooks = os.register_at_fork
    del os.register_at_fork
    try:
        with contextlib.suppress(ImportError):
            import_module("filelock")
    finally:
        os.register_at_fork = hooks


def resolve(path: str) -> Callable[..., Any]:
    """The object behind ``module:name``."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def _fork_gateway(spec: CellSpec, scenes: Scenes, fds: list[int]) -> int:
    mcp, data, complaints, config, executor, told = fds

    def serve() -> None:
        _collect_from_here()
        os.dup2(complaints, 2)
        try:
            with os.fdopen(config, "rb") as asked:
                settings = orjson.loads(asked.read())
            resolve(GATEWAY_MAIN)(settings, mcp, data, executor)
        except BaseException:
            os.write(2, traceback.format_exc().encode())
            raise

    try:
        return cell.fork(spec, scenes.of(spec.scene), keep=fds[:-1], told=told, body=serve)
    finally:
        for fd in fds:
            os.close(fd)


def _fork_trial(request: dict[str, Any], channel: int, output: int, env: int) -> int:
    """``env`` holds the user's environment; only the trial reads it: keys must not lie here."""
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _be_trial(request, channel, output, env, parent)
    for fd in (channel, output, env):
        os.close(fd)
    return pid


def _read_environment(fd: int) -> dict[str, str]:
    size = os.fstat(fd).st_size
    return orjson.loads(os.pread(fd, size, 0)) if size else {}


def _be_trial(
    request: dict[str, Any], channel: int, output: int, env: int, parent: int
) -> NoReturn:
    status = 1
    try:
        kernel.die_with_parent(parent)
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.environ.update(_read_environment(env))
        os.closerange(3, channel)
        os.closerange(channel + 1, os.sysconf("SC_OPEN_MAX"))
        _collect_from_here()
        resolve(TRIAL_MAIN)(request["spec"], socket.socket(fileno=channel))
        status = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)
