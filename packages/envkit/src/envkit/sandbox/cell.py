# SPDX-License-Identifier: Apache-2.0
"""The box of a gateway: one process, which is its own process 1, forked straight into it.

Contract: what serves in a cell is confined as what runs in any box: namespaces of its own, no
capability, no new privileges, no network, its control group and limits, a user that owns nothing
else, no further user namespaces. It sees its scene and what is its own, and may write to that
only. Nobody enters a cell and nothing is executed there, so it needs no init and no shell: when
its process ends, the kernel ends whatever it forked. The nursery forks cells; the fork server
owns them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

from envkit.sandbox import enter, kernel, loopio, mounts
from envkit.sandbox.box import NAMESPACES_ALLOWED, where
from envkit.sandbox.cgroup import Group, Parent
from envkit.sandbox.limits import Limits
from envkit.sandbox.scene import OWN, Scene

READY: Final = b"ready"
"""What a cell says when it is confined; anything else is a complaint."""

_HOST_NAME: Final = "gateway"
_AT_FORK: Final = os.CLONE_NEWPID | os.CLONE_NEWNET | os.CLONE_NEWIPC | os.CLONE_NEWUTS


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSpec:
    """A cell to fork, by paths that the nursery sees."""

    scene: Scene
    tmp: Path
    filesystem: Path
    apps_data: Path
    uid: int
    """Of the user that is its root, as the nursery sees it."""
    limits: Limits
    group: Group | None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        group = self.group
        return {
            "scene": self.scene.to_dict(),
            **{name: str(getattr(self, name)) for name in ("tmp", "filesystem", "apps_data")},
            "uid": self.uid,
            "limits": asdict(self.limits),
            "group": group.name if group else None,
            "version": group.parent.version if group else 0,
            "parents": {k: str(v) for k, v in group.parent.directories.items()} if group else {},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back :meth:`to_dict`."""
        parents = {name: Path(path) for name, path in data["parents"].items()}
        group = Group(data["group"], Parent(data["version"], parents)) if data["group"] else None
        return cls(
            scene=Scene.from_dict(data["scene"]),
            **{name: Path(data[name]) for name in ("tmp", "filesystem", "apps_data")},
            uid=data["uid"],
            limits=Limits(**data["limits"]),
            group=group,
        )


@dataclass(slots=True)
class Cell:
    """A living cell, as the fork server holds it."""

    fd: int
    """Process descriptor of its one process."""
    monitor: int
    """Host pid of it; the nursery reaps it when it is asked how it ended."""
    group: Group | None
    waited_s: float = 0.0
    """CPU seconds, known when it has ended."""

    def where(self) -> dict[str, Any]:
        """As `Box.where`."""
        return where(self.fd, self.group)

    def alive(self) -> bool:
        """False once its process is gone."""
        return self.fd >= 0 and not loopio.ended(self.fd)

    async def kill(self) -> None:
        """SIGKILL everything in it and wait until the kernel has let go."""
        if self.fd < 0:
            return
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.fd, signal.SIGKILL)
        await loopio.readable(self.fd)
        os.close(self.fd)
        self.fd = -1


def fork(
    spec: CellSpec, scene: int, *, keep: Sequence[int], told: int, body: Callable[[], None]
) -> int:
    """Call ``body`` in a new cell over ``scene``; returns the pid of its process.

    ``told`` hears whether it got so far. The cell ends with the caller, and holds a copy of its
    memory: what must not be readable in the cell must not be there.

    Raises:
        OSError: no process or no namespaces.
    """
    parent = os.pidfd_open(os.getpid())
    try:
        pid = mounts.fork_into(_AT_FORK)
        if pid == 0:
            _live(spec, scene, (*keep, told), told, parent, body)
    finally:
        os.close(parent)
    return pid


def _live(
    spec: CellSpec,
    scene: int,
    keep: Sequence[int],
    told: int,
    parent: int,
    body: Callable[[], None],
) -> None:
    status = enter.CANNOT_ENTER
    try:
        _confine(spec, scene, keep, parent)
        os.write(told, READY)
        os.close(told)
        status = 1
        body()
        status = 0
    except Exception as error:  # the boundary: what a body raises is the body's to tell
        if status == enter.CANNOT_ENTER:
            os.write(told, str(error).encode())
    finally:
        os._exit(status)


def _confine(spec: CellSpec, scene: int, keep: Sequence[int], parent: int) -> None:
    enter.reset_signals()
    enter.expect_oom()
    enter.attach_self(spec.group.open_procs() if spec.group else [])
    os.unshare(os.CLONE_NEWCGROUP)
    _mount_own(spec, scene)
    socket.sethostname(_HOST_NAME)
    _change_user(spec.uid)
    os.setsid()
    kernel.end_with_parent()  # a change of user clears it
    if loopio.ended(parent):
        os._exit(enter.CANNOT_ENTER)
    enter.close_all_but(keep)
    os.environ.clear()
    spec.limits.apply_to_self(without_cgroup=spec.group is None)
    kernel.drop_privileges()
    kernel.forbid_dumps()


def _mount_own(spec: CellSpec, scene: int) -> None:
    """The scene, and over it what is this cell's own; the rest of this machine is out of sight."""
    own = [mounts.proc(), *map(mounts.take, (spec.tmp, spec.filesystem, spec.apps_data))]
    os.setns(scene, os.CLONE_NEWNS)
    os.unshare(os.CLONE_NEWNS)
    for mount, name in zip(own, OWN, strict=True):
        mounts.put(mount, Path("/", name))


def _change_user(uid: int) -> None:
    """Be root of a user namespace that maps nobody else, and in which there will be no other.

    The namespaces of the cell belong to the one outside: not even its root could change them.
    """
    if uid != os.geteuid():
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    os.unshare(os.CLONE_NEWUSER)
    kernel.allow_dumps()  # else these files are not its own
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"0 {uid} 1")
    with contextlib.suppress(OSError):  # a kernel that does not let us
        NAMESPACES_ALLOWED.write_text("0")
