# SPDX-License-Identifier: Apache-2.0
"""The few system calls that Python does not offer: mount, prctl, capset; each raises OSError."""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path
from typing import Final

MS_RDONLY: Final = 1
MS_NOSUID: Final = 2
MS_NODEV: Final = 4
MS_NOEXEC: Final = 8
MS_REMOUNT: Final = 32
MS_BIND: Final = 4096
MS_REC: Final = 16384
MS_PRIVATE: Final = 1 << 18
MNT_DETACH: Final = 2

_MS_KEPT: Final = MS_NOSUID | MS_NODEV | MS_NOEXEC | 1024 | 2048
"""And noatime, nodiratime: statvfs(3) tells them by the same numbers."""

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_NAME: Final = 15
_PR_CAPBSET_DROP: Final = 24
_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_CAP_AMBIENT: Final = 47
_PR_CAP_AMBIENT_CLEAR_ALL: Final = 4
_CAP_VERSION_3: Final = 0x20080522
_LAST_CAP_FILE: Final = Path("/proc/sys/kernel/cap_last_cap")
_LAST_CAP: Final = int(_LAST_CAP_FILE.read_text()) if _LAST_CAP_FILE.exists() else 40
# read at import: inside a box /proc is another one

_libc = ctypes.CDLL(None, use_errno=True)


class _CapHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapData(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def mount(source: str, target: Path, kind: str, flags: int, options: str = "") -> None:
    """mount(2)."""
    _check(
        _libc.mount(source.encode(), os.fsencode(target), kind.encode(), flags, options.encode()),
        f"mount {kind} on {target}",
    )


def bind(source: Path, target: Path) -> None:
    """Make ``source`` visible at ``target``, which is created as a directory."""
    target.mkdir(parents=True, exist_ok=True)
    mount(str(source), target, "none", MS_BIND | MS_REC)


def unmount(target: Path) -> None:
    """Detach at once; what still holds it keeps it until it ends."""
    _check(_libc.umount2(os.fsencode(target), MNT_DETACH), f"umount {target}")


def die_with_parent(parent_pid: int) -> None:
    """SIGKILL this process when the thread that forked it ends; exits if it has already."""
    end_with_parent()
    if os.getppid() != parent_pid:
        os._exit(1)


def end_with_parent() -> None:
    """The same for one that cannot see its parent's pid: whether that lives is for it to check."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def forbid_dumps() -> None:
    """Nobody of the same uid may read or trace this process."""
    _prctl(_PR_SET_DUMPABLE, 0)


def allow_dumps() -> None:
    """As after an execution: the same user may read and trace this process."""
    _prctl(_PR_SET_DUMPABLE, 1)


def name_self(name: str) -> None:
    """What ``ps`` shows as the command of this process, at most 15 bytes."""
    _check(_libc.prctl(_PR_SET_NAME, name.encode(), 0, 0, 0), "prctl name")


def change_root(root: Path) -> None:
    """Make ``root``, a mount point, all that this process's mount namespace shows."""
    os.chdir(root)
    _check(_libc.pivot_root(b".", b"."), "pivot_root")
    unmount(Path("."))
    os.chdir("/")


def make_read_only(target: Path) -> None:
    """Let nothing be written through the mount at ``target``; its other flags stay."""
    kept = os.statvfs(target).f_flag & _MS_KEPT
    mount("none", target, "none", MS_REMOUNT | MS_BIND | MS_RDONLY | kept)


def drop_privileges() -> None:
    """Give up every capability for good, the bounding set included."""
    for capability in range(_LAST_CAP + 1):
        _prctl(_PR_CAPBSET_DROP, capability)
    _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = _CapHeader(_CAP_VERSION_3, 0)
    none = (_CapData * 2)()
    _check(_libc.capset(ctypes.byref(header), ctypes.byref(none)), "capset")
    no_new_privileges()


def no_new_privileges() -> None:
    """Nothing this process executes can give it more rights than it has."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def _prctl(option: int, value: int) -> None:
    _check(_libc.prctl(option, value, 0, 0, 0), f"prctl {option}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
