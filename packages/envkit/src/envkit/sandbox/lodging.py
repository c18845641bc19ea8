# SPDX-License-Identifier: Apache-2.0
"""What one environment of a trial occupies: a workspace, the agent's box, perhaps a gateway's.

Contract: agent code runs only in the agent's box. The gateway runs in a cell of its own that
shares nothing with it but ``/filesystem``; it alone sees ``/.apps_data``. ``close`` never
raises: what could not be removed is named in its answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import envkit
from envkit.deadline import DeadlineExceeded, deadline
from envkit.fault import SandboxStartFailed
from envkit.sandbox import archive, enter, loopio
from envkit.sandbox import box as boxes
from envkit.sandbox.bwrap import Bind, View, bwrap_binary
from envkit.sandbox.cell import READY, Cell, CellSpec
from envkit.sandbox.cgroup import Group, Parent, dissolve
from envkit.sandbox.channel import Channel, ChannelClosed, RequestFailed
from envkit.sandbox.limits import Limits, Usage
from envkit.sandbox.scene import Scene
from envkit.sandbox.spec import PARSED, BoxSpec
from envkit.sandbox.stage import Stage, Workspace
from envkit.sandbox.starvation import starved
from envkit.sandbox.warm.door import Direct, Door
from envkit.sandbox.warm.parent import Zygote

GATEWAY_LIMITS: Final = Limits(
    memory_mib=1024, processes=128, cpus=1.0, storage_mib=64, open_files=4096
)

CARRIER_LIMITS: Final = Limits(memory_mib=1024, processes=64)
"""Of what carries files in and out of a box; it holds one buffer and the names of one directory."""

AGENT_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_SWEEP_S: Final = 10.0
_KILL_S: Final = 15.0
_DYING_S: Final = 0.5
_COMPLAINT_BYTES: Final = 2000
_LOG_DIRECTORIES: Final = ("logs/agent", "logs/verifier", "logs/artifacts", "tests", "solution")


Announce = Callable[[str, str], None]
"""Takes an event and the name of the error that it is, or what a tool said of its own fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """What an environment used in all, and what of it could not be removed."""

    usage: Usage
    gateway: Usage
    endless: int
    """Commands of agent code that outlived their limit and were killed."""
    starved: int
    """The same, but this machine had no core for them."""
    commands_s: float
    """Seconds in which commands of agent code ran, those that starved left out."""
    cpu_s: float
    """CPU seconds of all of it, what entered the boxes included."""
    forks_s: float
    """The part of ``cpu_s`` that was spent on entering the boxes and carrying files."""
    left: tuple[str, ...] = ()


@dataclass(slots=True)
class _Running:
    """A command that runs now."""

    started: float
    cpu_s: float
    waiter: int = 0
    """Pid of what waits for it; 0 while nothing does yet."""
    direct: Direct | None = None
    killed: bool = False
    starved: bool = False
    outlived: bool = False
    """It was killed at its limit, not because nobody wanted it any more."""

    def kill(self) -> None:
        """Have its session killed, whatever it has come to."""
        self.killed = True
        if self.direct:
            self.direct.end()
        elif self.waiter:
            os.kill(self.waiter, signal.SIGTERM)


@dataclass(slots=True)
class Lodging:
    """The living parts of one environment."""

    spec: BoxSpec
    stage: Stage
    workspace: Workspace
    box: boxes.Box
    door: Door
    announce: Announce
    groups: Parent | None
    run: str
    _commands: dict[str, _Running] = field(default_factory=dict[str, _Running])
    _gateway_box: Cell | None = None
    _forking: asyncio.Future[None] | None = None
    _left: list[str] = field(default_factory=list[str])
    """What could not be removed so far, by name."""
    _serving: bool = False
    _gateway_channel: Channel | None = None
    _watchers: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _endless: int = 0
    _starved: int = 0
    _commands_s: float = 0.0
    _forks_s: float = 0.0
    """CPU seconds of what entered the box from outside, without what it executed there."""
    _unmetered_s: float = 0.0
    """CPU seconds of commands, where no control group counts them."""
    _survived: int = 0
    """Processes killed for want of memory while the box itself lived on."""
    _gateway_ended: asyncio.Future[dict[str, Any]] | None = None
    _closing: asyncio.Future[Closed] | None = None

    async def execute(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Run a command in the agent's box; its three descriptors came with the request."""
        before, started = self.usage(), time.monotonic()
        running = _Running(started, before.cpu_s)
        self._commands[request["exec"]] = running
        try:
            code = await self._perform(running, request, fds)
        finally:
            self._commands.pop(request["exec"], None)
        seconds = time.monotonic() - running.started
        if request["agent"] and not running.starved:
            self._commands_s += seconds
        if not self.box.alive():
            raise self._gone()
        after = self.usage()
        if after.oom_kills > before.oom_kills and await self._ends_soon():
            raise self._gone()
        self._survived = after.oom_kills
        return {
            "status": code,
            "seconds": seconds,
            "starved": running.starved and running.outlived,
            "endless": running.outlived and not running.starved,
            "oom_kills": after.oom_kills - before.oom_kills,
            "fork_refusals": after.fork_refusals - before.fork_refusals,
            "disk_full": after.disk_full,
        }

    async def _ends_soon(self) -> bool:
        """Whether the box is dying of the memory that a command of it has just run out of.

        The command's end is seen first where process 1 was chosen too; it takes a moment to end.
        """
        fd = os.dup(self.box.fd)
        try:
            async with deadline("stop", _DYING_S):
                await loopio.readable(fd)
        except DeadlineExceeded:
            return False
        finally:
            os.close(fd)
        return True

    def kill_command(self, request: dict[str, Any]) -> dict[str, Any]:
        """Kill the session of a running command; one that has ended is not an error.

        ``endless`` says that it outlived its limit; else its caller no longer wants it.
        """
        running = self._commands.get(request["exec"])
        if running is None:
            return {"running": False}
        running.starved = self._is_starved(running)
        running.outlived = request["endless"]
        running.kill()
        return {"running": True}

    async def _perform(self, running: _Running, request: dict[str, Any], fds: list[int]) -> int:
        """Run it by a warmed interpreter where it is one Python, else by a process of its own."""
        try:
            command = self._command(request, fds)
            running.direct = await self.door.start(command)
            if running.direct is None and not running.killed:
                running.waiter = enter.spawn(self.box.target(), command)
        finally:
            for fd in fds:
                os.close(fd)
        if running.direct:
            if running.killed:
                running.direct.end()
            return await running.direct.code()
        if not running.waiter:
            return 128 + signal.SIGKILL
        ended = await loopio.wait_child(running.waiter)
        self.meter(ended.own_cpu_s, ended.cpu_s - ended.own_cpu_s)
        if ended.code < 0 and not running.killed:  # it could not enter, or the host killed it
            raise RequestFailed(
                self._why_gone(), f"a command of box {self.spec.name} did not run or was cut off"
            )
        return ended.code

    def meter(self, own_cpu_s: float, used_cpu_s: float) -> None:
        """Add what a waiter used, and where no control group does, what it waited for."""
        self._forks_s += own_cpu_s
        if self.box.group is None:
            self._unmetered_s += used_cpu_s

    def _command(self, request: dict[str, Any], fds: list[int]) -> enter.Command:
        return enter.Command(
            argv=request["argv"],
            env={"ENVKIT_RUN": self.run, **request["env"]},
            cwd=request["cwd"],
            stdin=fds[0],
            stdout=fds[1],
            stderr=fds[2],
        )

    def _is_starved(self, running: _Running) -> bool:
        waiter = running.direct.guest.waiter if running.direct else running.waiter
        if not waiter:
            return True  # nothing has come to run at all
        used = self.usage().cpu_s - running.cpu_s if self.box.group else None
        wall_s = time.monotonic() - running.started
        cpus, followers = self.spec.limits.cpus, self.door.followers()
        return starved(waiter, wall_s=wall_s, cpu_s=used, cpus=cpus, followers=followers)

    async def sweep(self) -> dict[str, Any]:
        """Kill every process of the agent's box but its process 1."""
        async with deadline("stop", _SWEEP_S):
            swept = await self.box.sweep()
        if not swept:
            raise self._gone()
        return {}

    async def transfer(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Pack, unpack or look at a path of the box from outside; see `envkit.sandbox.archive`."""
        path, limit = request["path"], self.spec.limits.storage_mib << 20
        work = {
            "pack": lambda: archive.pack(path, fds[0], limit),
            "unpack": lambda: archive.unpack(path, fds[0]),
            "kind": lambda: archive.kind(path),
            "empty": lambda: archive.empty(path),
        }[request["what"]]
        try:
            # Out of the agent's reach: it must not stop the carrier by its limits or by signals.
            target = replace(self.box.target(), group=None, limits=CARRIER_LIMITS)
            waiter = enter.enter(target, keep=fds, body=work, reachable=False)
        finally:
            for fd in fds:
                os.close(fd)
        ended = await loopio.wait_child(waiter)
        self._forks_s += ended.cpu_s
        if ended.code == enter.CANNOT_ENTER:
            raise self._gone()
        return {"status": ended.code if ended.code >= 0 else 128 - ended.code}

    async def start_gateway(
        self, request: dict[str, Any], fds: list[int], nursery: Channel
    ) -> dict[str, Any]:
        """Have the nursery fork a gateway into a cell, on the sockets that came along.

        Descriptors: the agent's socket, the host-side data socket, a file for its complaints, a
        pipe with its configuration.
        """
        ours, theirs = socket.socketpair()
        told, tell = os.pipe2(os.O_CLOEXEC)
        try:
            sent = [*fds, theirs.detach(), tell]
            self._forking = asyncio.ensure_future(self._fork_gateway(sent, nursery))
            await asyncio.shield(self._forking)  # whoever asked may go: what is forked is ours
            async with deadline("start", request["start_s"]):
                said = await loopio.read_some(told, _COMPLAINT_BYTES)
            if said != READY:
                complaint = said.decode(errors="replace") or "ended without a word"
                raise SandboxStartFailed(f"box {self.spec.name}-gateway: {complaint}")
        except BaseException:
            ours.close()
            await self._give_gateway_up()
            raise
        finally:
            os.close(told)
        self._gateway_channel = Channel(
            ours,
            {"exec": self._execute_for_agent, "kill": self._kill_for_agent},
            on_event=self._hear_gateway,
        )
        self._serving = self._gateway_ended is not None and not self._gateway_ended.done()
        return {}

    async def _fork_gateway(self, fds: list[int], nursery: Channel) -> None:
        try:
            spec = self._cell()
            asking = asyncio.ensure_future(nursery.ask("gateway", fds, cell=spec.to_dict()))
            await asyncio.sleep(0)  # it is sent: our copies can go
        finally:
            for fd in fds:
                os.close(fd)
        try:
            pid = (await asking)["pid"]
        except BaseException:
            if spec.group:
                await dissolve(spec.group)
            raise
        self._gateway_box = Cell(os.pidfd_open(pid), pid, spec.group)
        self._gateway_ended = asyncio.ensure_future(nursery.ask("ended", pid=pid))
        self._keep(self._watch_gateway(self._gateway_ended))

    async def _give_gateway_up(self) -> None:
        cell, self._gateway_box = self._gateway_box, None
        if cell is not None:
            self._left += await _end(cell)

    def gateway_alive(self) -> bool:
        """True while the gateway process and its box live."""
        return self._serving and self._gateway_box is not None and self._gateway_box.alive()

    def serves(self) -> bool:
        """True while the agent's box and its gateway both live."""
        return self.box.alive() and self.gateway_alive()

    def parts(self) -> dict[str, Any]:
        """Process 1 and control group, as the host knows them, of its ``box`` and ``gateway``."""
        found = {"box": self.box, "gateway": self._gateway_box}
        return {name: box.where() for name, box in found.items() if box and box.alive()}

    def usage(self) -> Usage:
        """What the agent's box used so far."""
        used = self.box.group.usage() if self.box.group else Usage()
        return replace(used, disk_full=self.workspace.disk_full())

    def cpu_s(self) -> float:
        """CPU seconds so far of the boxes and of what entered them."""
        boxes = (self.box, self._gateway_box)
        grouped = sum(box.group.cpu_s() for box in boxes if box and box.group)
        return grouped + self._unmetered_s + self._forks_s

    async def close(self) -> Closed:
        """Kill everything, remove everything, say what was used; the same answer when repeated."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        return await asyncio.shield(self._closing)

    async def _close(self) -> Closed:
        await self._forked()
        usage, gateway, cpu_s = self.usage(), _used(self._gateway_box), self.cpu_s()
        if self._gateway_channel:
            self._gateway_channel.close()
        self.door.close()
        for box in (self._gateway_box, self.box):
            if box is not None:
                self._left += await _end(box)
        if self.groups is None:
            usage, gateway = await self._waited(usage, gateway)
            cpu_s = usage.cpu_s + gateway.cpu_s + self._forks_s
        try:
            self.stage.close_workspace(self.workspace)
        except OSError as error:
            self._left.append(f"workspace {self.workspace.path}: {error.strerror}")
        return Closed(
            usage=usage,
            gateway=gateway,
            endless=self._endless,
            starved=self._starved,
            commands_s=self._commands_s,
            cpu_s=cpu_s,
            forks_s=self._forks_s,
            left=tuple(self._left),
        )

    async def _forked(self) -> None:
        """What was asked for a gateway must be there to be killed."""
        if self._forking:
            with contextlib.suppress(DeadlineExceeded):
                async with deadline("stop", _KILL_S):
                    await asyncio.gather(self._forking, return_exceptions=True)

    async def _waited(self, usage: Usage, gateway: Usage) -> tuple[Usage, Usage]:
        """Without control groups: the CPU seconds that waiting for what has ended tells."""
        boxes_s = [box.waited_s if box else 0.0 for box in (self.box, self._gateway_box)]
        if self._gateway_ended is not None:
            with contextlib.suppress(RequestFailed, ChannelClosed, DeadlineExceeded):
                async with deadline("stop", _KILL_S):
                    boxes_s[1] += float((await asyncio.shield(self._gateway_ended))["cpu_s"])
        return (
            replace(usage, cpu_s=boxes_s[0] + self._unmetered_s),
            replace(gateway, cpu_s=boxes_s[1]),
        )

    def watch_box(self) -> None:
        """Announce ``box_exit`` when the agent's box ends without being asked."""
        self._keep(self._watch_box())

    def _gone(self) -> RequestFailed:
        return RequestFailed(self._why_gone(), f"box {self.spec.name} is gone")

    def _why_gone(self) -> str:
        """A box that used up its memory killed itself, process 1 included."""
        usage = self.usage()
        ran_out = usage.ran_out_of_memory(self.spec.limits) and usage.oom_kills > self._survived
        return "KilledOwnBox" if ran_out else "SandboxDied"

    async def _execute_for_agent(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        done = await self.execute({**request, "agent": True}, fds)
        self._endless += done["endless"]
        self._starved += done["starved"]
        return done

    async def _kill_for_agent(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        return self.kill_command(request)

    def _hear_gateway(self, message: dict[str, Any]) -> None:
        """A tool failed, and not by the agent's doing; the agent may say nothing of it."""
        if message["event"] == "tool_fault":
            self.announce("tool_fault", f"{message['tool']}: {message['code']}")

    def _cell(self) -> CellSpec:
        """What to fork a gateway into; its control group is made here."""
        # Pages of files count as memory of who wrote them, and the agent writes through it too.
        memory_mib = GATEWAY_LIMITS.memory_mib + self.spec.limits.storage_mib
        limits = replace(GATEWAY_LIMITS, memory_mib=memory_mib)
        name = f"{self.spec.name}-gateway"
        return CellSpec(
            scene=self._scene(),
            tmp=self.workspace.directory("gateway-tmp"),
            filesystem=self.workspace.filesystem,
            apps_data=self.workspace.apps_data,
            uid=self.stage.owner,
            limits=limits,
            group=Group.create(self.groups, name, limits) if self.groups else None,
        )

    def _scene(self) -> Scene:
        shown = [(path, str(path)) for path in _interpreter_directories()]
        if self.spec.parsed:
            shown.append((self.spec.parsed, PARSED))
        return Scene(
            root=self.stage.expose(self.spec.root),
            place=self.stage.scene(self.spec.root, self.spec.parsed),
            binds=[Bind(self.stage.expose(path), target) for path, target in shown],
            in_user_namespace=self.stage.in_user_namespace,
        )

    async def _watch_gateway(self, serving: asyncio.Future[dict[str, Any]]) -> None:
        with contextlib.suppress(RequestFailed, ChannelClosed):
            await serving
        served, self._serving = self._serving, False
        if served and self._closing is None:
            self.announce("gateway_exit", "ServerDisconnected")

    async def _watch_box(self) -> None:
        fd = os.dup(self.box.fd)
        try:
            await loopio.readable(fd)
        finally:
            os.close(fd)
        if self._closing is None:
            self.announce("box_exit", self._why_gone())

    def _keep(self, waiting: Any) -> None:
        task = asyncio.get_running_loop().create_task(waiting)
        self._watchers.add(task)
        task.add_done_callback(self._watchers.discard)


async def open_lodging(
    spec: BoxSpec,
    stage: Stage,
    groups: Parent | None,
    run: str,
    announce: Announce,
    zygote: Zygote | None,
) -> Lodging:
    """Mount the workspace and start the agent's box.

    Raises:
        SandboxStartFailed: bubblewrap refused.
        DeadlineExceeded: the box was not ready in time.
        OSError: a mount or a control group was refused.
    """
    world = spec.world
    workspace = stage.open_workspace(spec.name, spec.limits.storage_mib, world)
    door: Door | None = None
    try:
        upper, work = workspace.layer("root-layer")
        door = Door(stage.path / "d" / spec.name, zygote, upper)
        _make_log_directories(upper)
        view = View(
            root=stage.expose(spec.root),
            upper=upper,
            work=work,
            binds=[Bind(workspace.filesystem, "/filesystem", writable=True), *door.binds()],
            network=spec.network,
            env={"ENVKIT_RUN": run, "PATH": AGENT_PATH},
        )
        group = Group.create(groups, spec.name, spec.limits) if groups else None
        box = await boxes.start(
            _exposed_bwrap(stage),
            view,
            uid=stage.owner,
            limits=spec.limits,
            group=group,
            start_s=spec.start_s,
        )
    except BaseException:
        if door:
            door.close()
        stage.close_workspace(workspace)
        if groups:
            await dissolve(Group.named(groups, spec.name))
        raise
    lodging = Lodging(spec, stage, workspace, box, door, announce, groups, run)
    door.serve(box, lambda guest: lodging.meter(guest.own_cpu_s, guest.cpu_s))
    lodging.watch_box()
    return lodging


def _used(box: Cell | None) -> Usage:
    return box.group.usage() if box and box.group else Usage()


async def _end(box: boxes.Box | Cell) -> list[str]:
    """Kill a box and remove its group; what is left by name."""
    try:
        async with deadline("stop", _KILL_S):
            await box.kill()
    except DeadlineExceeded:
        return [f"process {box.monitor}"]
    if box.group is None:
        return []
    return [] if await dissolve(box.group) else [f"cgroup {box.group.name}"]


def _make_log_directories(upper: Path) -> None:
    owner = upper.stat()
    for relative in _LOG_DIRECTORIES:
        path = upper
        for part in Path(relative).parts:
            path = path / part
            path.mkdir(exist_ok=True)
            os.chown(path, owner.st_uid, owner.st_gid)


def _interpreter_directories() -> list[Path]:
    """Where a lazily imported module of the gateway lies; nothing of a task is there."""
    source = Path(envkit.__file__).resolve().parents[1]  # an editable install lies elsewhere
    return sorted({Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve(), source})


def _exposed_bwrap(stage: Stage) -> Path:
    """Bubblewrap with the libraries next to it, where the boxes' user can execute it."""
    binary = bwrap_binary()
    if binary.parent.name != "_bin":
        return binary
    site = binary.parents[2]
    return stage.expose(site) / binary.relative_to(site)
