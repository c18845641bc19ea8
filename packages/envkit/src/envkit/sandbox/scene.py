# SPDX-License-Identifier: Apache-2.0
"""What the boxes of gateways all see, mounted once: a mount namespace that each starts from.

Contract: everything in a scene is read-only and of no task: a root, interpreters, documents of a
world, six devices. A box copies its dozen mounts, not the thousands of the namespace where the
workspaces of all trials lie, and adds its own. A scene lives as long as its descriptor or a box.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NoReturn, Self

from envkit.fault import SandboxStartFailed
from envkit.sandbox import kernel, mounts
from envkit.sandbox.bwrap import Bind

OWN: Final = ("proc", "tmp", "filesystem", ".apps_data")
"""Where each box mounts what is its own."""

_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS: Final = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}
_COMPLAINT_BYTES: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What to mount, by paths that the nursery sees."""

    root: Path
    place: Path
    """An empty directory of the stage, for this scene alone."""
    binds: Sequence[Bind]
    in_user_namespace: bool

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        binds = [{"source": str(b.source), "target": b.target} for b in self.binds]
        return {**asdict(self), "root": str(self.root), "place": str(self.place), "binds": binds}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back :meth:`to_dict`."""
        return cls(
            root=Path(data["root"]),
            place=Path(data["place"]),
            binds=[Bind(Path(bind["source"]), bind["target"]) for bind in data["binds"]],
            in_user_namespace=data["in_user_namespace"],
        )


class Scenes:
    """The scenes of one nursery, each mounted when it is first asked for."""

    def __init__(self) -> None:
        self._mounted: dict[Path, int] = {}

    def of(self, scene: Scene) -> int:
        """Descriptor of its mount namespace.

        Raises:
            SandboxStartFailed: a mount was refused.
        """
        if scene.place not in self._mounted:
            self._mounted[scene.place] = _mount(scene)
        return self._mounted[scene.place]


def _mount(scene: Scene) -> int:
    """By a child, which stays until its namespace is held here."""
    said, say = os.pipe2(os.O_CLOEXEC)
    wait, hold = os.pipe2(os.O_CLOEXEC)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(hold)
        _be_stagehand(scene, say, wait, parent)
    for fd in (say, wait):
        os.close(fd)
    try:
        answer = os.read(said, _COMPLAINT_BYTES)
        if answer != b"ready":
            problem = answer.decode(errors="replace") or "ended without a word"
            raise SandboxStartFailed(f"what gateways see cannot be mounted: {problem}")
        return os.open(f"/proc/{child}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(said)
        os.close(hold)
        os.waitpid(child, 0)


def _be_stagehand(scene: Scene, say: int, wait: int, parent: int) -> NoReturn:
    try:
        kernel.die_with_parent(parent)
        os.umask(0o022)
        os.unshare(os.CLONE_NEWNS)
        kernel.mount("none", Path("/"), "none", kernel.MS_REC | kernel.MS_PRIVATE)
        _furnish(scene)
        os.write(say, b"ready")
        os.read(wait, 1)
    except Exception as error:  # the boundary: who asked is told, and nobody else listens
        os.write(say, str(error).encode())
    finally:
        os._exit(0)


def _furnish(scene: Scene) -> None:
    root, upper, work = (scene.place / name for name in ("root", "upper", "work"))
    for directory in (root, upper, work):
        directory.mkdir(exist_ok=True)  # one that was refused may be asked for again
    options = f"lowerdir={scene.root},upperdir={upper},workdir={work}"
    options += ",userxattr" if scene.in_user_namespace else ""
    kernel.mount("envkit", root, "overlay", kernel.MS_NOSUID | kernel.MS_NODEV, options)
    for name in (*OWN, "dev"):
        (root / name).mkdir(exist_ok=True)
    for bind in scene.binds:
        kernel.bind(bind.source, root / bind.target.lstrip("/"))
    mounts.restrict(root, mounts.READ_ONLY | mounts.NO_SUID | mounts.NO_DEVICES)
    _furnish_devices(root / "dev")
    kernel.change_root(root)


def _furnish_devices(dev: Path) -> None:
    flags = kernel.MS_NOSUID | kernel.MS_NOEXEC
    kernel.mount("envkit", dev, "tmpfs", flags, "mode=755,size=64k,nr_inodes=64")
    for name in _DEVICES:
        (dev / name).touch()
        kernel.mount(f"/dev/{name}", dev / name, "none", kernel.MS_BIND)
    for name, end in _LINKS.items():
        (dev / name).symlink_to(f"/proc/self/fd{end}")
    mounts.restrict(dev, mounts.READ_ONLY | mounts.NO_SUID | mounts.NO_EXECUTION)
