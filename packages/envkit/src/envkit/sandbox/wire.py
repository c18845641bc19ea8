# SPDX-License-Identifier: Apache-2.0
"""JSON messages with file descriptors over a Unix stream socket.

Contract: a frame is four bytes of length (big endian), then JSON. Descriptors travel with the
frame that names them by count under ``"fds"``, in order. Both ends are local and trusted to be
this code; a frame that is too long or not JSON closes the channel.
"""

from __future__ import annotations

import array
import os
import socket
import struct
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

import orjson

MAX_FRAME: Final = 32 << 20
"""Bytes. A command line with its environment is far below; anything above is a broken peer."""

_MAX_FDS: Final = 16
_HEADER: Final = struct.Struct(">I")


class WireError(Exception):
    """The peer sent something that is not a frame."""


class Decoder:
    """Turns what arrives on a socket into (message, descriptors)."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._fds: deque[int] = deque()

    def receive(self, sock: socket.socket) -> bool:
        """Read once without waiting for more; false when the peer has closed."""
        data, ancillary, _, _ = sock.recvmsg(1 << 18, socket.CMSG_SPACE(_MAX_FDS * 4))
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds = array.array("i")
                fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
                self._fds.extend(fds)
        self._data += data
        return bool(data)

    def frames(self) -> Iterator[tuple[dict[str, Any], list[int]]]:
        """Complete messages so far.

        Raises:
            WireError: a frame is longer than MAX_FRAME or not a JSON object.
        """
        while len(self._data) >= _HEADER.size:
            (length,) = _HEADER.unpack_from(self._data)
            if length > MAX_FRAME:
                raise WireError(f"frame of {length} bytes; the limit is {MAX_FRAME}")
            end = _HEADER.size + length
            if len(self._data) < end:
                return
            message = _parse(bytes(self._data[_HEADER.size : end]))
            del self._data[:end]
            yield message, [self._fds.popleft() for _ in range(int(message.get("fds", 0)))]

    def close(self) -> None:
        """Close descriptors that arrived for no message."""
        while self._fds:
            os.close(self._fds.popleft())


def frame(message: dict[str, Any], descriptors: int = 0) -> bytes:
    """One message as it goes over the socket; ``descriptors`` travel with its first byte."""
    body = orjson.dumps({**message, "fds": descriptors} if descriptors else message)
    return _HEADER.pack(len(body)) + body


def _parse(body: bytes) -> dict[str, Any]:
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise WireError(f"frame is not JSON: {error}") from error
    if not isinstance(message, dict):
        raise WireError("frame is not a JSON object")
    return message  # pyright: ignore[reportUnknownVariableType]
