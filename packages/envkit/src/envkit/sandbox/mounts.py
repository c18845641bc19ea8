# SPDX-License-Identifier: Apache-2.0
"""Mounts that are nowhere yet, and namespaces to come: the newer system calls, by number.

They carry a mount from one mount namespace into another, which mount(2) cannot, and fork straight
into namespaces, which fork(2) cannot. Linux 5.12 has them all, with the same numbers on every
architecture; each raises OSError.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Final

READ_ONLY: Final = 1
NO_SUID: Final = 2
NO_DEVICES: Final = 4
NO_EXECUTION: Final = 8

_OPEN_TREE: Final = 428
_MOVE_MOUNT: Final = 429
_FSOPEN: Final = 430
_FSCONFIG: Final = 431
_FSMOUNT: Final = 432
_CLONE3: Final = 435
_MOUNT_SETATTR: Final = 442

_AT_FDCWD: Final = -100
_AT_RECURSIVE: Final = 0x8000
_OPEN_TREE_CLONE: Final = 1
_MOVE_MOUNT_F_EMPTY_PATH: Final = 4
_CLOSE_ON_EXEC: Final = 1
_FSCONFIG_CMD_CREATE: Final = 6
_CLONE_CHILD_CLEARTID: Final = 0x00200000
_CLONE_CHILD_SETTID: Final = 0x01000000
_PR_GET_TID_ADDRESS: Final = 40

_python = ctypes.PyDLL(None, use_errno=True)  # it keeps the lock of the interpreter
_python.syscall.restype = ctypes.c_long
for _hook in ("PyOS_BeforeFork", "PyOS_AfterFork_Parent", "PyOS_AfterFork_Child"):
    getattr(_python, _hook).restype = None

TELLING: Final = {"open_tree": _OPEN_TREE, "clone3": _CLONE3, "mount_setattr": _MOUNT_SETATTR}
"""Calls that read their arguments before they ask who calls: they tell what a kernel has."""


class _Attributes(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns"))


class _CloneArguments(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64)
        for name in (
            "flags",
            "pidfd",
            "child_tid",
            "parent_tid",
            "exit_signal",
            "stack",
            "stack_size",
            "tls",
        )
    )


def refused(calls: Mapping[str, int] = TELLING) -> str:
    """The first of the calls that the kernel lacks or a filter refuses, and how; else empty.

    Each is made with arguments that are none, so nothing comes of it.
    """
    for name, number in calls.items():
        try:
            _call(name, number, -1, None, -1, None, 0)
        except OSError as error:
            if error.errno != errno.EINVAL:
                return f"{name}: {os.strerror(error.errno or 0)}"
    return ""


def take(path: Path) -> int:
    """A copy of what is mounted at ``path`` and below, as a descriptor."""
    flags = _OPEN_TREE_CLONE | os.O_CLOEXEC | _AT_RECURSIVE
    return _call("open_tree", _OPEN_TREE, _AT_FDCWD, os.fsencode(path), flags)


def proc() -> int:
    """A new /proc of the caller's process namespace, as a descriptor."""
    made = _call("fsopen", _FSOPEN, b"proc", _CLOSE_ON_EXEC)
    try:
        _call("fsconfig proc", _FSCONFIG, made, _FSCONFIG_CMD_CREATE, None, None, 0)
        flags = NO_SUID | NO_DEVICES | NO_EXECUTION
        return _call("fsmount proc", _FSMOUNT, made, _CLOSE_ON_EXEC, flags)
    finally:
        os.close(made)


def put(mount: int, target: Path) -> None:
    """Mount what the descriptor holds at ``target``, and close it."""
    try:
        where = (_AT_FDCWD, os.fsencode(target), _MOVE_MOUNT_F_EMPTY_PATH)
        _call(f"mount at {target}", _MOVE_MOUNT, mount, b"", *where)
    finally:
        os.close(mount)


def restrict(top: Path, attributes: int) -> None:
    """Add ``attributes`` to the mount at ``top`` and to every mount below."""
    asked = _Attributes(set=attributes)
    size = ctypes.sizeof(asked)
    where = (_AT_FDCWD, os.fsencode(top), _AT_RECURSIVE)
    _call(f"restrict {top}", _MOUNT_SETATTR, *where, ctypes.byref(asked), size)


def fork_into(namespaces: int) -> int:
    """As `os.fork`, into new namespaces: with CLONE_NEWPID the child is process 1 of one."""
    own_id = ctypes.c_uint64(0)
    _python.prctl(_PR_GET_TID_ADDRESS, ctypes.byref(own_id), 0, 0, 0)
    known = _CLONE_CHILD_SETTID | _CLONE_CHILD_CLEARTID if own_id.value else 0
    arguments = _CloneArguments(
        flags=namespaces | known,  # the C library keeps its own note of the thread's id
        child_tid=own_id.value,
        exit_signal=signal.SIGCHLD,
    )
    _python.PyOS_BeforeFork()
    pid = _python.syscall(ctypes.c_long(_CLONE3), ctypes.byref(arguments), ctypes.sizeof(arguments))
    if pid == 0:
        _python.PyOS_AfterFork_Child()
        return 0
    number = ctypes.get_errno()
    _python.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(number, f"clone: {os.strerror(number)}")
    return pid


def _call(what: str, number: int, *arguments: object) -> int:
    longs = (ctypes.c_long(each) if isinstance(each, int) else each for each in arguments)
    result = _python.syscall(ctypes.c_long(number), *longs)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result
