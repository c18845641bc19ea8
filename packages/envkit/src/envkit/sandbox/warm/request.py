# SPDX-License-Identifier: Apache-2.0
"""What is asked of a warmed interpreter: one frame with three descriptors, then one byte.

Contract: the frame is four bytes of length (big endian), then fields that a zero byte ends:
directory, umask, ignored signals, limits, the number of arguments, the arguments, the
environment. The shim in a box writes the same (`envkit.image.shim`), and what it writes is read
only by a process that is confined in that box already. The answer is `READY` with the pid of that
process; it goes on when `GO` has come, and not a moment before: whoever asks may still start a
cold interpreter instead. At the end comes `ENDED` with the code.
"""

from __future__ import annotations

import array
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from envkit.sandbox.warm.program import Cold

READY: Final = b"R"
GO: Final = b"G"
ENDED: Final = b"E"

ANSWER: Final = struct.Struct(">ci")
"""`READY` with a pid, or `ENDED` with a code: negative for a signal."""

_HEADER: Final = struct.Struct(">I")
_MAX_BYTES: Final = 4 << 20
"""The kernel gives a command line and its environment no more than this either."""
_DESCRIPTORS: Final = 3
_CHUNK: Final = 1 << 16
_FIELDS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One interpreter to be."""

    argv: tuple[str, ...]
    env: Mapping[bytes, bytes]
    cwd: str
    umask: int | None = None
    ignored: tuple[int, ...] = ()
    """Signals that whoever asks ignores."""
    limits: Mapping[int, tuple[int, int]]
    """Resource limits of whoever asks, by kind: (soft, hard)."""


def pack(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> bytes:
    """A frame for a command whose signals, umask and limits are those of the box."""
    pairs = [f"{name}={value}" for name, value in env.items()]
    fields = [cwd, "", "", "", str(len(argv)), *argv, *pairs]
    body = b"".join(os.fsencode(field) + b"\0" for field in fields)
    return _HEADER.pack(len(body)) + body


def unpack(body: bytes) -> Request:
    """Read the fields.

    Raises:
        Cold: they are not what `pack` makes.
    """
    if not body.endswith(b"\0"):
        raise Cold("not a request")
    fields = body[:-1].split(b"\0")
    try:
        cwd, umask, ignored, limits, count = fields[:_FIELDS]
        end = _FIELDS + int(count)
        argv = fields[_FIELDS:end]
        if not argv or end > len(fields):
            raise Cold("not a request")
        return Request(
            argv=tuple(os.fsdecode(field) for field in argv),
            env=dict(_pair(field) for field in fields[end:]),
            cwd=os.fsdecode(cwd),
            umask=int(umask, 8) if umask else None,
            ignored=tuple(int(number) for number in ignored.split()),
            limits=dict(_limit(field) for field in limits.split()),
        )
    except ValueError as error:
        raise Cold("not a request") from error


def receive(conn: socket.socket) -> tuple[bytes, list[int]]:
    """One frame without its length, and its three descriptors.

    Raises:
        Cold: it is too long, cut off or without them.
        OSError: nothing came in time.
    """
    data = bytearray()
    fds: list[int] = []
    wanted = _HEADER.size
    while len(data) < wanted:
        more, ancillary, _, _ = conn.recvmsg(
            min(wanted - len(data), _CHUNK), socket.CMSG_SPACE(_DESCRIPTORS * 4)
        )
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                came = array.array("i")
                came.frombytes(payload[: len(payload) - len(payload) % came.itemsize])
                fds += came
        if not more or len(fds) > _DESCRIPTORS:
            raise Cold("not a request")
        data += more
        if len(data) == _HEADER.size:
            wanted += min(_HEADER.unpack(data)[0], _MAX_BYTES + 1)
    if len(fds) != _DESCRIPTORS or wanted > _MAX_BYTES + _HEADER.size:
        raise Cold("not a request")
    return bytes(data[_HEADER.size :]), fds


def _pair(field: bytes) -> tuple[bytes, bytes]:
    name, sep, value = field.partition(b"=")
    if not sep or not name:
        raise ValueError(field)
    return name, value


def _limit(field: bytes) -> tuple[int, tuple[int, int]]:
    kind, soft, hard = field.split(b":")
    return int(kind), (int(soft), int(hard))
