# SPDX-License-Identifier: Apache-2.0
"""A world's documents, laid out once before any trial; looked up by what a file holds now.

One file a document, named by the size and the SHA-256 of the document: a document that an agent
changed is simply not there. Each begins with a checksum of the rest; one that does not hold, that
is cut or is of another version is not there either, and the document is parsed as if there were
no shelf. Read through the page cache at each call: nothing of it stays in a gateway's memory.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

MAGIC = b"envkit-parsed/1\n"
CHECK_BYTES = 16
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A document found on the shelf."""

    ends: Sequence[int]
    """Where the text of each page ends in `body`."""
    body: bytes

    @property
    def pages(self) -> int:
        """How many pages it has."""
        return len(self.ends)

    def page(self, number: int) -> str:
        """Page `number` (from 1) as it was kept."""
        start = self.ends[number - 2] if number > 1 else 0
        return self.body[start : self.ends[number - 1]].decode("utf-8", "surrogatepass")


@dataclass(slots=True)
class Shelf:
    """The folder of one world."""

    folder: Path
    _sizes: frozenset[int] | None = field(default=None, repr=False)

    def find(self, fd: int, most_bytes: int | None = None) -> Held | None:
        """The document open at `fd`, if it is here and neither it nor its text is larger."""
        size = os.fstat(fd).st_size
        if size not in self._known_sizes() or (most_bytes is not None and size > most_bytes):
            return None
        try:
            with open(self.folder / record_name(fd), "rb") as record:
                if most_bytes is not None and os.fstat(record.fileno()).st_size > most_bytes:
                    return None
                return unpack(record.read())
        except OSError:
            return None

    def _known_sizes(self) -> frozenset[int]:
        """Of the documents here: most other files are told apart without reading them."""
        if self._sizes is None:
            try:
                names = os.listdir(self.folder)
            except OSError:
                names = []
            heads = (name.partition("-")[0] for name in names)
            self._sizes = frozenset(int(head) for head in heads if head.isdigit())
        return self._sizes


def record_name(fd: int) -> str:
    """Name of the record of the document open at `fd`, by what it holds now."""
    digest, size = hashlib.sha256(), 0
    while chunk := os.pread(fd, CHUNK, size):
        digest.update(chunk)
        size += len(chunk)
    return f"{size}-{digest.hexdigest()}"


def pack(pages: Sequence[str]) -> bytes:
    """A record that `unpack` reads back."""
    texts = [page.encode("utf-8", "surrogatepass") for page in pages]
    lengths = json.dumps([len(text) for text in texts]).encode() + b"\n"
    body = lengths + b"".join(texts)
    return MAGIC + _check(body) + body


def unpack(record: bytes) -> Held | None:
    """The document in a record; None when it is damaged."""
    body = record[len(MAGIC) + CHECK_BYTES :]
    if record[: len(MAGIC) + CHECK_BYTES] != MAGIC + _check(body):
        return None
    lengths, _, texts = body.partition(b"\n")
    ends: list[int] = []
    for length in json.loads(lengths):
        ends.append((ends[-1] if ends else 0) + length)
    return Held(ends=ends, body=texts)


def _check(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=CHECK_BYTES).digest()
