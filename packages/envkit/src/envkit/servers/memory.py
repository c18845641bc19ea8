# SPDX-License-Identifier: Apache-2.0
"""Text parsed once and kept for later calls, within a bound; the oldest used goes first.

Keys name the file's identity (inode, size, modification time), so a changed file is never served
from here. Children see it by copy-on-write and return what they parsed in `Done.remember`.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping

MEMORY_CHARS = 4 << 20
"""Of one gateway: about a thousand pages. Hundreds of gateways share one machine."""


class Memory(Mapping[str, str]):
    """A bounded map of text; reading through `Mapping` does not change the order of use."""

    def __init__(self, limit: int = MEMORY_CHARS) -> None:
        self._limit = limit
        self._size = 0
        self._texts: OrderedDict[str, str] = OrderedDict()

    def keep(self, texts: Mapping[str, str]) -> None:
        """Add texts, dropping the oldest beyond the bound."""
        for key, text in texts.items():
            self._size += len(text) - len(self._texts.pop(key, ""))
            self._texts[key] = text
        while self._size > self._limit:
            self._size -= len(self._texts.popitem(last=False)[1])

    def __getitem__(self, key: str) -> str:
        return self._texts[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)
