# SPDX-License-Identifier: Apache-2.0
"""Server-sent events: bytes as they come in, payloads as they are whole.

Grammar: the HTML standard's event stream, of which only ``data`` is read; engines send one line of
it an event.
"""

from __future__ import annotations

from operator import methodcaller

DONE = b"[DONE]"
"""The last payload of a stream."""

_IS_DATA = methodcaller("startswith", b"data: ")


class Events:
    """Splits a stream into the payloads of its events."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The payloads that are whole now, in order."""
        text = self._rest + chunk if self._rest else chunk
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n")
        if text.endswith(b"\n\n"):
            lines = text[:-1].split(b"\n")
            if not any(lines[1::2]) and all(map(_IS_DATA, lines[::2])):
                self._rest = b""
                return [line[6:] for line in lines[::2]]  # a line an event, as engines send them
        *whole, self._rest = text.split(b"\n\n")
        return [payload for event in whole if (payload := _payload(event))]


def _payload(event: bytes) -> bytes:
    lines = [line for line in event.split(b"\n") if line.startswith(b"data:")]
    return b"\n".join(line[5:].removeprefix(b" ") for line in lines)
