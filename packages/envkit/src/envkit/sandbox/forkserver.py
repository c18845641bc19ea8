# SPDX-License-Identifier: Apache-2.0
"""The single-threaded process that starts boxes, enters them and keeps what trials opened.

Contract: everything it started dies with it, and it dies with the process that holds its control
channel. It never blocks: every wait is in its loop. What a channel opened is closed when the
channel closes, so a killed trial leaves nothing. It imports little, because every command and
every file transfer is a fork of it; trials and gateways are forks of its warmed child, the
nursery.

Operations on the control channel: ``trial`` (fork one), ``attach`` (serve one that runs
elsewhere), ``stop`` (kill one), ``tell`` (forward an event to one), ``census`` (what is alive).
On a trial's channel: ``open``, ``exec``, ``kill``, ``sweep``, ``transfer``, ``turn``, ``gateway``,
``usage``, ``parts``, ``close``. On a gateway's channel: ``exec`` and ``kill`` in its one box.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import signal
import socket
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NoReturn

from envkit.sandbox import kernel, loopio
from envkit.sandbox.bwrap import bwrap_binary
from envkit.sandbox.cgroup import Group, Parent, dissolve, find_parent, leftovers
from envkit.sandbox.channel import Channel
from envkit.sandbox.lodging import Closed, Lodging, open_lodging
from envkit.sandbox.meter import Meter
from envkit.sandbox.spec import BoxSpec, ServerSettings
from envkit.sandbox.stage import Stage
from envkit.sandbox.turns import Turns
from envkit.sandbox.warm.parent import Zygotes


@dataclass(frozen=True, slots=True)
class Nursery:
    """The warmed child process, and the way to it."""

    pid: int
    socket: socket.socket


class ForkServer:
    """State of a running server: its stage, its trials, their boxes."""

    def __init__(
        self, settings: ServerSettings, stage: Stage, control: socket.socket, nursery: Nursery
    ) -> None:
        self._settings = settings
        self._stage = stage
        self._groups: Parent | None = find_parent() if settings.cgroups else None
        self._lodgings: dict[str, Lodging] = {}
        self._trials: dict[str, Channel] = {}
        self._meters: dict[str, Meter] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._done = asyncio.Event()
        self._turns = Turns(settings.turns)
        self._warm = asyncio.Event()
        self._nursery_pid = nursery.pid
        self._nursery = Channel(
            nursery.socket, on_event=lambda _: self._warm.set(), on_close=self._lose_nursery
        )
        operations = {
            "trial": self._trial,
            "attach": self._attach,
            "stop": self._stop,
            "tell": self._tell,
            "census": self._census,
        }
        self._control = Channel(control, operations, on_close=self._done.set)
        self._zygotes = Zygotes(stage.path, settings.run)

    async def serve(self) -> None:
        """Work until the control channel closes, then kill whatever is left."""
        await self._zygotes.warm(self._settings.roots)
        await self._warm.wait()
        self._control.tell("ready", cgroup=self._groups.version if self._groups else 0)
        await self._done.wait()
        await asyncio.gather(
            *(lodging.close() for lodging in list(self._lodgings.values())), return_exceptions=True
        )
        if self._closing:
            await asyncio.wait(self._closing)
        self._nursery.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._nursery_pid, signal.SIGKILL)
        await loopio.wait_child(self._nursery_pid)
        await self._zygotes.close()
        await self._dissolve_groups()
        self._stage.leave()

    async def _dissolve_groups(self) -> None:
        """Groups of boxes that were being opened or closed when the end came."""
        if self._groups is None:
            return
        run = self._settings.run
        for name in [name for name in leftovers(self._groups) if name.startswith(f"{run}-")]:
            await dissolve(Group.named(self._groups, name))

    def _lose_nursery(self) -> None:
        """Without it nothing can be forked: the run is over, and says so by its channel."""
        self._warm.set()
        self._control.close()

    async def _trial(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        trial = request["trial"]
        ours, theirs = socket.socketpair()
        meter = self._meters[trial] = Meter()
        self._trials[trial] = Channel(
            ours, self._trial_operations(trial), on_event=lambda event: self._hear(trial, event)
        )
        what = {name: request[name] for name in ("trial", "spec")}
        try:
            with theirs:
                asking = asyncio.ensure_future(
                    self._nursery.ask("trial", [theirs.fileno(), *fds], **what)
                )
                await asyncio.sleep(0)  # it is sent: our copies can go
            for fd in fds:
                os.close(fd)
            ended = await asking
        finally:
            self._trials.pop(trial).close()
            self._turns.give(trial)
            await self._evict(trial)
            self._meters.pop(trial)
        told = {name: ended[name] for name in ("code", "cpu_s", "peak_memory_mib")}
        return {**told, "cpu_by_phase": meter.end(ended["cpu_s"]), "forks_s": meter.forks_s}

    def _hear(self, trial: str, event: dict[str, Any]) -> None:
        """Pass on what a trial says; a phase also ends the account of the one before."""
        if event["event"] == "rest":
            self._turns.give(trial)
            return
        if event["event"] == "phase":
            boxes_s = sum(lodging.cpu_s() for lodging in self._of(trial))
            self._meters[trial].enter(event["phase"], event["cpu_s"], boxes_s)
        self._control.tell(**{**event, "trial": trial})

    def _of(self, trial: str) -> list[Lodging]:
        lodgings = self._lodgings.items()
        return [lodging for key, lodging in lodgings if key.startswith(f"{trial}/")]

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
        answer = await self._nursery.ask("stop", trial=request["trial"])
        return {"running": answer["running"]}

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
            "cpu_s": {
                "fork server": time.process_time(),
                "nursery": self._nursery_cpu_s(),
                "zygotes": self._zygotes.cpu_s(),
            },
        }

    def _nursery_cpu_s(self) -> float:
        return loopio.cpu_s_of(self._nursery_pid)

    def _trial_operations(self, trial: str) -> dict[str, Any]:
        def named(request: dict[str, Any], fds: Sequence[int] = ()) -> Lodging:
            """Raises KeyError for a box that never opened or was closed; its descriptors go then.

            Whoever reads at their other end would wait for ever.
            """
            lodging = self._lodgings.get(f"{trial}/{request['box']}")
            if lodging is None:
                for fd in fds:
                    os.close(fd)
                raise KeyError(f"{trial}/{request['box']}")
            return lodging

        async def open_(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
            await self._open(trial, BoxSpec.from_dict(request["spec"]))
            return {}

        async def exec_(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
            return await named(request, fds).execute(request, fds)

        async def kill(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
            return named(request).kill_command(request)

        async def sweep(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
            return await named(request).sweep()

        async def transfer(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
            return await named(request, fds).transfer(request, fds)

        async def gateway(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
            return await named(request, fds).start_gateway(request, fds, self._nursery)

        async def turn(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
            return {"waited_s": await self._turns.take(trial, request["rank"])}

        async def usage(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
            lodging = named(request)
            door = lodging.door
            return {
                **asdict(lodging.usage()),
                "warmed": door.started,
                "admitted": door.admitted,
            }

        async def parts(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
            return named(request).parts()

        async def close(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
            return asdict(await self._close(trial, f"{trial}/{request['box']}"))

        return {
            "open": open_,
            "exec": exec_,
            "kill": kill,
            "sweep": sweep,
            "transfer": transfer,
            "gateway": gateway,
            "turn": turn,
            "usage": usage,
            "parts": parts,
            "close": close,
        }

    async def _open(self, trial: str, spec: BoxSpec) -> None:
        unique = replace(spec, name=f"{self._settings.run}-{trial}-{spec.name}")

        def announce(what: str, error: str) -> None:
            if trial in self._trials:
                self._trials[trial].tell(what, box=spec.name, error=error)

        self._lodgings[f"{trial}/{spec.name}"] = await open_lodging(
            unique,
            self._stage,
            self._groups,
            self._settings.run,
            announce,
            self._zygotes.of(spec.root) if self._warms(spec) else None,
        )

    async def _close(self, trial: str, key: str) -> Closed:
        closed = await self._lodgings.pop(key).close()
        if trial in self._meters:
            self._meters[trial].box_gone(closed.cpu_s, closed.forks_s)
        return closed

    def _warms(self, spec: BoxSpec) -> bool:
        """Whether a warmed interpreter is worth its memory: not where nothing else is warmed."""
        return self._settings.warm or spec.root in self._settings.roots

    async def _evict(self, trial: str) -> None:
        for key in [key for key in self._lodgings if key.startswith(f"{trial}/")]:
            await self._close(trial, key)


def main() -> None:
    """Entry point of the server process: ``python -m envkit.sandbox.forkserver FD SETTINGS``."""
    control = socket.socket(fileno=int(sys.argv[1]))
    settings = ServerSettings.from_dict(json.loads(sys.argv[2]))
    _raise_file_limit()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches us through the control channel
    bwrap_binary()
    stage = Stage.enter(settings.stage)
    nursery = _fork_nursery(control, settings)
    asyncio.run(_serve(settings, stage, control, nursery))


async def _serve(
    settings: ServerSettings, stage: Stage, control: socket.socket, nursery: Nursery
) -> None:
    await ForkServer(settings, stage, control, nursery).serve()


def _fork_nursery(control: socket.socket, settings: ServerSettings) -> Nursery:
    ours, theirs = socket.socketpair()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        ours.close()
        control.close()
        _be_nursery(theirs, parent, settings)
    theirs.close()
    return Nursery(pid, ours)


def _be_nursery(sock: socket.socket, parent: int, settings: ServerSettings) -> NoReturn:
    status = 1
    try:
        kernel.die_with_parent(parent)
        from envkit.sandbox import nursery  # the imports it makes must not weigh on the parent

        nursery.main(sock, warm=settings.warm, preload=settings.preload)
        status = 0
    except BaseException as error:  # the boundary: who asked hears the last line, the log has all
        traceback.print_exc()
        said = f"{type(error).__name__}: {error}".partition("\n")[0]
        print(f"what trials and gateways are forked from failed: {said}", file=sys.stderr)
    finally:
        sys.stderr.flush()
        os._exit(status)


def _raise_file_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


if __name__ == "__main__":
    main()
