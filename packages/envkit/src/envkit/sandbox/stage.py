# SPDX-License-Identifier: Apache-2.0
"""The fork server's private mount namespace: where the writable layers of boxes live.

Contract: everything a box writes lies on a tmpfs of bounded size inside a mount namespace that
only the fork server and its children see. When they are gone the kernel drops it all, so a
killed run leaves no mounts and no files. As root the boxes run as a host user that owns nothing
else; as an ordinary user the fork server first enters a user namespace of its own.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from envkit.fault import SandboxUnavailable
from envkit.image.rootfs import uid_outside
from envkit.sandbox import kernel

BOX_UID: Final = 60_600
"""Host user of boxes when envkit runs as root; outside every range that distributions hand out."""

STAGES: Final = Path("/tmp")
"""Stages lie where the boxes' user can reach them: every parent must be open to all."""

STAGE_NAME: Final = re.compile(r"envkit-run-([0-9a-f]{16})")

OWNER: Final = "owner"
"""File in a stage that holds the pid of the process that made it, and when that was born."""

_FILES_PER_MIB: Final = 24
"""Of a box's storage. Without it a box could hold more empty files than can be carried in time."""

_SYSTEM: Final = kernel.MS_NOSUID | kernel.MS_NODEV


def files_uid() -> int:
    """Host uid that must own what boxes are to see as their root's: roots and worlds."""
    return uid_outside() or BOX_UID


@dataclass(slots=True)
class Workspace:
    """Writable layers of one trial's boxes on one tmpfs."""

    path: Path
    filesystem: Path
    apps_data: Path
    owner: int

    def layer(self, name: str) -> tuple[Path, Path]:
        """Upper and work directory of one more overlay."""
        upper, work = self.path / name / "upper", self.path / name / "work"
        for directory in (upper.parent, upper, work):
            directory.mkdir(exist_ok=True)
            os.chown(directory, self.owner, self.owner)
        return upper, work

    def directory(self, name: str) -> Path:
        """One more that boxes may write to."""
        path = self.path / name
        path.mkdir(exist_ok=True)
        os.chown(path, self.owner, self.owner)
        return path

    def disk_full(self) -> bool:
        """True when what is left could not hold a page."""
        stat = os.statvfs(self.path)
        return stat.f_bavail == 0 or stat.f_favail == 0


@dataclass(slots=True)
class Stage:
    """Mount points of one run."""

    path: Path
    owner: int
    """Uid, as this process sees it, of the user that boxes run as and that maps to their root."""
    in_user_namespace: bool
    _bound: dict[Path, Path] = field(default_factory=dict[Path, Path])

    @classmethod
    def enter(cls, path: Path) -> Stage:
        """Move this process into the private namespace and mount the stage at ``path``.

        Raises:
            SandboxUnavailable: the machine forbids it; the message says what to do.
        """
        as_root = os.geteuid() == 0
        stage = cls(path, owner=BOX_UID if as_root else 0, in_user_namespace=not as_root)
        try:
            _unshare(stage.in_user_namespace)
            kernel.mount("none", Path("/"), "none", kernel.MS_REC | kernel.MS_PRIVATE)
            kernel.mount("envkit", path, "tmpfs", _SYSTEM, "mode=755")
        except OSError as error:
            raise SandboxUnavailable(
                f"no private mount namespace: {error.strerror}; allow user namespaces"
                " (sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns=0)"
            ) from error
        return stage

    def leave(self) -> None:
        """Take the stage away, so that nothing is left even when whoever made it was killed."""
        kernel.unmount(self.path)
        (self.path / OWNER).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # its maker put something there, and removes it
            self.path.rmdir()

    def expose(self, source: Path) -> Path:
        """A path to ``source`` that the boxes' user can reach, whatever its parents allow."""
        if source not in self._bound:
            name = hashlib.sha256(os.fsencode(source)).hexdigest()[:12]
            target = self.path / "src" / name
            kernel.bind(source, target)
            self._bound[source] = target
        return self._bound[source]

    def scene(self, *sources: Path | None) -> Path:
        """The place for what is mounted once of these sources, whoever asks first."""
        name = hashlib.sha256(repr(sources).encode()).hexdigest()[:12]
        place = self.path / "s" / name
        place.mkdir(parents=True, exist_ok=True)
        return place

    def open_workspace(self, name: str, storage_mib: int, world: Path | None) -> Workspace:
        """Mount a workspace; with a world its files appear under ``filesystem`` and ``apps_data``.

        Raises:
            OSError: the kernel refused a mount.
        """
        path = self.path / "w" / name
        path.mkdir(parents=True)
        options = f"mode=755,size={storage_mib}m,nr_inodes={storage_mib * _FILES_PER_MIB}"
        options += f",uid={self.owner},gid={self.owner}"
        kernel.mount("envkit", path, "tmpfs", _SYSTEM, options)
        workspace = Workspace(path, path / "filesystem", path / "apps_data", self.owner)
        for part in ("filesystem", "apps_data"):
            self._lay(workspace, part, world / part if world else None)
        return workspace

    def close_workspace(self, workspace: Workspace) -> None:
        """Detach and forget; safe to call twice."""
        for path in (workspace.filesystem, workspace.apps_data, workspace.path):
            if os.path.ismount(path):
                kernel.unmount(path)
        if workspace.path.exists():
            workspace.path.rmdir()

    def _lay(self, workspace: Workspace, part: str, lower: Path | None) -> None:
        target = workspace.path / part
        target.mkdir()
        os.chown(target, self.owner, self.owner)
        if lower is None or not lower.is_dir():
            return
        upper, work = workspace.layer(f"{part}-layer")
        options = f"lowerdir={self.expose(lower)},upperdir={upper},workdir={work}"
        if self.in_user_namespace:
            options += ",userxattr"
        kernel.mount("envkit", target, "overlay", _SYSTEM, options)


def _unshare(user_namespace: bool) -> None:
    if not user_namespace:
        os.unshare(os.CLONE_NEWNS)
        return
    uid, gid = os.geteuid(), os.getegid()
    os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNS)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
