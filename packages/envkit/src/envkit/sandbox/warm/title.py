# SPDX-License-Identifier: Apache-2.0
"""What ``/proc/PID/cmdline`` and ``environ`` show of a child: its own program, not its parent's.

prctl(2) with ``PR_SET_MM_MAP`` points the kernel at other memory and needs no privilege; a kernel
built without it shows an interpreter without arguments.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Mapping, Sequence
from typing import Final

_PR_SET_MM: Final = 35
_PR_SET_MM_MAP: Final = 14
_STAT: Final = {
    "start_code": 26,
    "end_code": 27,
    "start_data": 45,
    "end_data": 46,
    "start_brk": 47,
    "start_stack": 28,
    "arg_start": 48,
    "arg_end": 49,
    "env_start": 50,
    "env_end": 51,
}
"""Numbers of fields in ``/proc/PID/stat``, counted from 1."""

_BARE: Final = b"python3\0"
_libc = ctypes.CDLL(None, use_errno=True)
_libc.sbrk.restype = ctypes.c_void_p
_kept: list[mmap.mmap] = []
"""What the kernel has been pointed at must stay."""


class _Map(ctypes.Structure):
    _fields_ = (
        *(
            (name, ctypes.c_uint64)
            for name in (
                "start_code",
                "end_code",
                "start_data",
                "end_data",
                "start_brk",
                "brk",
                "start_stack",
                "arg_start",
                "arg_end",
                "env_start",
                "env_end",
                "auxv",
            )
        ),
        ("auxv_size", ctypes.c_uint32),
        ("exe_fd", ctypes.c_uint32),
    )


def layout() -> Mapping[str, int]:
    """Where this process's memory has what; a child has it in the same places."""
    with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return {name: int(fields[number - 3]) for name, number in _STAT.items()}


def entitle(places: Mapping[str, int], argv: Sequence[bytes], env: Mapping[bytes, bytes]) -> None:
    """Show ``argv`` and ``env`` as what this process was started with."""
    arguments = b"".join(argument + b"\0" for argument in argv)
    pairs = b"".join(name + b"=" + value + b"\0" for name, value in env.items())
    memory = mmap.mmap(-1, len(arguments) + len(pairs), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.write(arguments + pairs)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    middle = start + len(arguments)
    shown = _Map(**places)
    shown.brk = _libc.sbrk(0)
    shown.arg_start, shown.arg_end = start, middle
    shown.env_start, shown.env_end = middle, middle + len(pairs)
    shown.exe_fd = 0xFFFFFFFF
    size = ctypes.sizeof(shown)
    if _libc.prctl(_PR_SET_MM, _PR_SET_MM_MAP, ctypes.byref(shown), size, 0) == 0:
        _kept.append(memory)
    else:
        length = places["env_end"] - places["arg_start"]
        ctypes.memset(places["arg_start"], 0, length)
        ctypes.memmove(places["arg_start"], _BARE, len(_BARE))
