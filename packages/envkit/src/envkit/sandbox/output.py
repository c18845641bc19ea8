# SPDX-License-Identifier: Apache-2.0
"""A bounded part of what a command wrote: the first and the last of it, the rest counted."""


class HeadTail:
    """Keeps the first and the last half of a stream within a bound, and counts the rest."""

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self.dropped = 0

    def feed(self, data: bytes) -> None:
        """Take the next piece of the stream."""
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        over = len(self._tail) - self._half
        if over > 0:
            del self._tail[:over]
            self.dropped += over

    def bytes(self) -> bytes:
        """What was kept, with one line in place of what was not."""
        if not self.dropped:
            return bytes(self._head + self._tail)
        gap = f"\n[... {self.dropped} bytes not kept ...]\n".encode()
        return bytes(self._head) + gap + bytes(self._tail)
