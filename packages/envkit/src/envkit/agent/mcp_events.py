# SPDX-License-Identifier: Apache-2.0
"""Server-sent events out of bytes as they come, cut anywhere.

Contract: events come out the same however the bytes are split. Comments, and fields that MCP does
not use, are dropped; an event longer than the bound raises `EventTooLong`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

MAX_EVENT_BYTES = 32 << 20
"""Bytes of one event: a rendered page in base64 takes megabytes; a server gone mad must still not
fill the memory."""


class EventTooLong(Exception):
    """An event does not end within `MAX_EVENT_BYTES`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event."""

    data: bytes
    id: str = ""
    retry_ms: int | None = None
    name: str = "message"


class EventReader:
    """Takes the bytes of one stream."""

    def __init__(self, most_bytes: int = MAX_EVENT_BYTES) -> None:
        self._most = most_bytes
        self._rest = bytearray()
        self._lines: list[bytes] = []
        self._held = 0

    def feed(self, data: bytes) -> Iterator[Event]:
        """The events that end in these bytes.

        Raises:
            EventTooLong: one is longer than the bound.
        """
        self._rest += data
        if b"\n" in data or b"\r" in data:  # else a long line would be split anew with each part
            yield from self._whole_lines()
        if self._held + len(self._rest) > self._most:
            raise EventTooLong(f"an event is longer than {self._most} bytes")

    def _whole_lines(self) -> Iterator[Event]:
        *lines, rest = self._rest.splitlines(keepends=True) or [bytearray()]
        if rest.endswith(b"\n"):
            lines, rest = [*lines, rest], bytearray()
        self._rest = rest
        for line in lines:
            yield from self._line(bytes(line.rstrip(b"\r\n")))

    def _line(self, line: bytes) -> Iterator[Event]:
        if line:
            self._lines.append(line)
            self._held += len(line)
        elif self._lines:
            yield _event(self._lines)
            self._lines, self._held = [], 0


def _event(lines: list[bytes]) -> Event:
    fields: dict[bytes, list[bytes]] = {}
    for line in lines:
        name, _, value = line.partition(b":")
        fields.setdefault(name, []).append(value.removeprefix(b" "))
    retry = fields.get(b"retry", [b""])[-1]
    return Event(
        data=b"\n".join(fields.get(b"data", [])),
        id=fields.get(b"id", [b""])[-1].decode("utf-8", "replace"),
        retry_ms=int(retry) if retry.isdigit() else None,
        name=fields.get(b"event", [b"message"])[-1].decode("utf-8", "replace"),
    )
