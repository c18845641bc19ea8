# SPDX-License-Identifier: Apache-2.0
"""The single-threaded, warmed process that starts boxes, enters them and forks trials.

Contract: everything it started dies with it, and it dies with the process that holds its control
channel. It holds no task, no solution, no verifier and no key, because gateways are copies of
its memory. It never blocks: every wait is in its loop. What a channel opened is closed when the
channel closes, so a killed trial leaves nothing.

Operations on the control channel: ``trial`` (fork one), ``attach`` (serve one
that runs elsewhere), ``stop`` (kill one), ``tell`` (forward an event to one),
``census`` (what is alive). On a trial's channel: ``open``, ``exec``, ``kill``, ``sweep``,
``transfer``, ``gateway``, ``usage``, ``close``. On a gateway's channel: ``exec`` and ``kill`` in
its one box.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from importlib import import_module
from typing import Any, Final, NoReturn

from envkit.sandbox import kernel, loopio
from envkit.sandbox.bwrap import bwrap_binary
from envkit.sandbox.cgroup import Parent, find_parent
from envkit.sandbox.channel import Channel
from envkit.sandbox.lodging import GATEWAY_MAIN, Lodging, open_lodging
from envkit.sandbox.spec import BoxSpec, ServerSettings
from envkit.sandbox.stage import Stage

TRIAL_MAIN: Final = "envkit.trial.child:main"
"""What a forked trial runs: ``main(spec, socket)``."""

WARM: Final = ("envkit.servers.gateway:warm", "envkit.trial.child:warm")


class ForkServer:
    """State of a running server: its stage, its trials, their boxes."""

    def __init__(self, settings: ServerSettings, stage: Stage, control: socket.socket) -> None:
        self._settings = settings
        self._stage = stage
        self._groups: Parent | None = find_parent()
        self._lodgings: dict[str, Lodging] = {}
        self._trials: dict[str, Channel] = {}
        self._pids: dict[str, int] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._done = asyncio.Event()
        operations = {
            "trial": self._trial,
            "attach": self._attach,
            "stop": self._stop,
            "tell": self._tell,
            "census": self._census,
        }
        self._control = Channel(control, operations, on_close=self._done.set)

    async def serve(self) -> None:
        """Work until the control channel closes, then kill whatever is left."""
        self._control.tell("ready", cgroup=self._groups.version if self._groups else 0)
        await self._done.wait()
        for lodging in list(self._lodgings.values()):
            await lodging.close()
        if self._closing:
            await asyncio.wait(self._closing)

    async def _trial(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        ours, theirs = socket.socketpair()
        output = fds[0]
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            _be_trial(request["spec"], request["env"], theirs, output, parent)
        theirs.close()
        os.close(output)
        trial = request["trial"]
        self._trials[trial] = Channel(
            ours,
            self._trial_operations(trial),
            on_event=lambda event: self._control.tell(**{**event, "trial": trial}),
        )
        self._pids[trial] = pid
        ended = await loopio.wait_child(pid)
        del self._pids[trial]
        self._trials.pop(trial).close()
        await self._evict(trial)
        return asdict(ended)

    async def _attach(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Serve a trial that runs in another process on the socket that came along."""
        trial = request["trial"]

        def detach() -> None:
            self._trials.pop(trial, None)
            task = asyncio.get_running_loop().create_task(self._evict(trial))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

        sock = socket.socket(fileno=fds[0])
        self._trials[trial] = Channel(sock, self._trial_operations(trial), on_close=detach)
        return {}

    async def _stop(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """SIGKILL the process of a trial; its boxes follow when its channel closes."""
        pid = self._pids.get(request["trial"])
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
        return {"running": pid is not None}

    async def _tell(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        for trial, channel in self._trials.items():
            if request["trial"] in (trial, "*"):
                channel.tell(request["name"])
        return {}

    async def _census(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        lodgings = list(self._lodgings.values())
        return {
            "boxes": sum(lodging.box.alive() for lodging in lodgings),
            "gateways": sum(lodging.gateway_alive() for lodging in lodgings),
            "live": sum(lodging.serves() for lodging in lodgings),
            "trials": len(self._trials),
        }

    def _trial_operations(self, trial: str) -> dict[str, Any]:
        def named(request: dict[str, Any]) -> Lodging:
            return self._lodgings[f"{trial}/{request['box']}"]

        async def open_(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
            await self._open(trial, BoxSpec.from_dict(request["spec"]))
            return {}

        async def exec_(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
            return await named(request).execute(request, fds)

        async def kill(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
            return named(request).kill_command(request["exec"])

        async def sweep(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
            return await named(request).sweep()

        async def transfer(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
            return await named(request).transfer(request, fds)

        async def gateway(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
            return await named(request).start_gateway(request, fds)

        async def usage(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
            return asdict(named(request).usage())

        async def close(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
            lodging = self._lodgings.pop(f"{trial}/{request['box']}")
            return asdict(await lodging.close())

        return {
            "open": open_,
            "exec": exec_,
            "kill": kill,
            "sweep": sweep,
            "transfer": transfer,
            "gateway": gateway,
            "usage": usage,
            "close": close,
        }

    async def _open(self, trial: str, spec: BoxSpec) -> None:
        unique = replace(spec, name=f"{self._settings.run}-{trial}-{spec.name}")

        def announce(what: str) -> None:
            if trial in self._trials:
                self._trials[trial].tell(what, box=spec.name)

        self._lodgings[f"{trial}/{spec.name}"] = await open_lodging(
            unique, self._stage, self._groups, self._settings.run, announce
        )

    async def _evict(self, trial: str) -> None:
        for key in [key for key in self._lodgings if key.startswith(f"{trial}/")]:
            await self._lodgings.pop(key).close()


def main() -> None:
    """Entry point of the server process: ``python -m envkit.sandbox.forkserver FD SETTINGS``."""
    control = socket.socket(fileno=int(sys.argv[1]))
    settings = ServerSettings.from_dict(json.loads(sys.argv[2]))
    _raise_file_limit()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches us through the control channel
    bwrap_binary()
    stage = Stage.enter(settings.stage)
    if settings.warm:
        _warm()
    asyncio.run(_serve(settings, stage, control))


async def _serve(settings: ServerSettings, stage: Stage, control: socket.socket) -> None:
    await ForkServer(settings, stage, control).serve()


def _warm() -> None:
    """Do once what every child needs, then freeze it so that children share the pages."""
    import_module(GATEWAY_MAIN)
    for path in WARM:
        resolve(path)()
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise RuntimeError(f"{threads} threads after warming; a fork of this process could hang")
    gc.collect()
    gc.freeze()
    gc.disable()


def resolve(path: str) -> Callable[..., Any]:
    """The object behind ``module:name``."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def _be_trial(
    spec: dict[str, Any], env: dict[str, str], channel: socket.socket, output: int, parent: int
) -> NoReturn:
    status = 1
    try:
        kernel.die_with_parent(parent)
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.dup2(output, 1)
        os.dup2(output, 2)
        keep = channel.fileno()
        os.closerange(3, keep)
        os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))
        os.environ.update(env)
        gc.enable()
        resolve(TRIAL_MAIN)(spec, channel)
        status = 0
    except BaseException:
        import traceback

        traceback.print_exc()
        raise
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _raise_file_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    main()
