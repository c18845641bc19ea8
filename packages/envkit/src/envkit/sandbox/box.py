# SPDX-License-Identifier: Apache-2.0
"""A box: namespaces, a throw-away root, limits; started by bubblewrap, owned by the fork server.

Contract: ``start`` returns a box whose process 1 has said it is ready, or raises and leaves
nothing. The box ends when its ``life`` descriptor closes, when ``kill`` is called, or with the
fork server. Must be called from the main thread: the box dies with the *thread* that started it.
"""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import orjson

from envkit.deadline import deadline
from envkit.fault import SandboxStartFailed
from envkit.sandbox import kernel, loopio
from envkit.sandbox.bwrap import View, arguments
from envkit.sandbox.cgroup import Group
from envkit.sandbox.enter import Target, attach_self
from envkit.sandbox.limits import Limits

NAMESPACES_ALLOWED: Final = Path("/proc/sys/user/max_user_namespaces")
"""Of the user namespace of whoever opens it."""

_STDERR_BYTES: Final = 2000
_VOICE_BYTES: Final = 1 << 16


@dataclass(slots=True)
class Box:
    """A living box."""

    fd: int
    """Process descriptor of its process 1, which bubblewrap reaps: its number may be reused."""
    monitor: int
    """Host pid of bubblewrap, a child of the fork server."""
    life: int
    """Write end of process 1's standard input."""
    voice: int
    """Read end of its standard output."""
    group: Group | None
    limits: Limits
    network: bool
    waited_s: float = 0.0
    """CPU seconds of bubblewrap and what it waited for, known when the box has ended."""

    def target(self) -> Target:
        """What is needed to enter it."""
        return Target(self.fd, self.group, self.limits, self.network)

    def where(self) -> dict[str, Any]:
        """Host pid of process 1, 0 once it is gone, and the directories of its control group."""
        return where(self.fd, self.group)

    def alive(self) -> bool:
        """False once process 1 is gone."""
        return self.fd >= 0 and not loopio.ended(self.fd)

    async def kill(self) -> None:
        """SIGKILL everything in it and wait until the kernel has let go."""
        if self.fd < 0:
            return
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.fd, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.monitor, signal.SIGKILL)
        self.waited_s = (await loopio.wait_child(self.monitor)).cpu_s
        for fd in (self.fd, self.life, self.voice):
            os.close(fd)
        self.fd = self.life = self.voice = -1

    async def sweep(self) -> bool:
        """Have process 1 kill all others, which cannot kill it; false when it is gone."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self.life, b"\n")
        return bool(await loopio.read_some(self.voice, _VOICE_BYTES))


def where(process_1: int, group: Group | None) -> dict[str, Any]:
    """As `Box.where`, by the process descriptor."""
    lines = Path(f"/proc/self/fdinfo/{process_1}").read_text().splitlines()
    pid = next(int(line.split()[1]) for line in lines if line.startswith("Pid:"))
    groups = [str(path) for path in group.paths()] if group else []
    return {"pid": max(pid, 0), "groups": groups}


async def start(
    binary: Path, view: View, *, uid: int, limits: Limits, group: Group | None, start_s: float
) -> Box:
    """Start a box and wait until it says it is ready.

    Raises:
        SandboxStartFailed: bubblewrap ended instead; its complaint is in the message.
        DeadlineExceeded: it was not ready in ``start_s`` seconds.
    """
    info_r, info_w = os.pipe()
    life_r, life_w = os.pipe()
    out_r, out_w = os.pipe()
    err_r, err_w = os.pipe()
    parent = os.getpid()
    monitor = os.fork()
    if monitor == 0:
        os.set_inheritable(info_w, True)
        argv = [str(binary), *arguments(view, info_fd=info_w)]
        _become_bwrap(argv, (life_r, out_w, err_w), info_w, uid, group, parent)
    for fd in (info_w, life_r, out_w, err_w):
        os.close(fd)
    try:
        async with deadline("start", start_s):
            ready = await loopio.read_some(out_r, 1)
            info = await loopio.read_json_object(info_r) if ready else b""
            if not ready:
                complaint = await loopio.read_some(err_r, _STDERR_BYTES)
                raise SandboxStartFailed(f"bubblewrap: {_last_line(complaint)}")
        pid = int(orjson.loads(info)["child-pid"])
        process_1 = os.pidfd_open(pid)  # it said it is ready, so the number is still its own
        _spare(pid)
        await loopio.wait_child(_forbid_namespaces(process_1))
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.kill(monitor, signal.SIGKILL)
        await loopio.wait_child(monitor)
        os.close(life_w)
        os.close(out_r)
        raise
    finally:
        for fd in (info_r, err_r):
            os.close(fd)
    return Box(process_1, monitor, life_w, out_r, group, limits, view.network)


def _spare(pid: int) -> None:
    """Process 1 is the last that an out-of-memory kill may choose; only root may say so."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "w") as file:
        file.write("-1000")


def _forbid_namespaces(process_1: int) -> int:
    """Let nothing in the box make user namespaces: in its own it would hold every capability.

    Returns the pid of the child that joins the box's user namespace to set this, which is possible
    only from there. A kernel that does not let us leaves boxes as they are.
    """
    child = os.fork()
    if child == 0:
        try:
            os.setns(process_1, os.CLONE_NEWUSER)
            NAMESPACES_ALLOWED.write_text("0")
        finally:
            os._exit(0)
    return child


def _last_line(text: bytes) -> str:
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "ended without a word"


def _become_bwrap(
    argv: list[str],
    stdio: tuple[int, int, int],
    info_fd: int,
    uid: int,
    group: Group | None,
    parent: int,
) -> NoReturn:
    try:
        for number, fd in enumerate(stdio):
            os.dup2(fd, number, inheritable=True)
        os.closerange(3, info_fd)
        procs = group.open_procs() if group else []
        attach_self(procs)
        os.closerange(info_fd + 1, os.sysconf("SC_OPEN_MAX"))
        if os.geteuid() == 0 and uid != 0:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        kernel.die_with_parent(parent)
        os.execve(
            argv[0], argv, {"PATH": "/usr/bin:/bin", "ENVKIT_RUN": os.environ.get("ENVKIT_RUN", "")}
        )
    except OSError as error:
        os.write(2, f"{error}\n".encode())
    finally:
        os._exit(1)
