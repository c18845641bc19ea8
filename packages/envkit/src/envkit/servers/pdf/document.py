# SPDX-License-Identifier: Apache-2.0
"""A PDF opened for one call, its pages read once and remembered for later calls."""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from envkit.servers.contract import ToolFault
from envkit.servers.filesystem.entries import shown
from envkit.servers.pdf.library import HEADER_WITHIN, WRONG_PASSWORD, PdfError, opened
from envkit.servers.pdf.page import PageText, laid_out, unpacked
from envkit.servers.pdf.shelf import Held
from envkit.servers.tool import NotAtOnce, World

SERVER = "pdf_server"
STOP_EARLY = 0.6
"""Of the deadline: a call that still has pages to do then answers with `next`."""
AS_IMAGE = "use read_page_as_image to see it"
AT_ONCE_BYTES = 1 << 20
"""Of a file, and of its text: hashing and searching these takes a few milliseconds."""


@dataclass(slots=True, kw_only=True)
class Document:
    """An open PDF."""

    path: str
    raw: Any
    """The library's document; None for one from the shelf."""
    identity: str
    known: Mapping[str, str]
    pages: int
    held: Held | None = None
    fresh: dict[str, str] = field(default_factory=dict[str, str])
    """Pages laid out by this call, to be remembered."""

    def page(self, number: int) -> PageText:
        """Page `number` (from 1), from the shelf or from memory when it was read before."""
        return unpacked(self._packed(number))

    def _packed(self, number: int) -> str:
        if self.held is not None:
            return self.held.page(number)
        key = f"{self.identity}:{number}"
        packed = self.known.get(key) or self.fresh.get(key)
        if packed is None:
            packed = self.fresh[key] = laid_out(self.raw, number - 1)
        return packed


@contextmanager
def open_text(world: World, path: str, password: str) -> Generator[Document]:
    """The PDF at `path` for its text alone: from the shelf where it is there, else as `open_pdf`.

    A password may open another view of a file, so a call with one is never answered from there.
    Raises NotAtOnce where the answer must be at once and cannot.
    """
    held = _held(world, path) if world.shelf and not password else None
    if held is not None:
        yield Document(
            path=shown(path), raw=None, identity="", known={}, pages=held.pages, held=held
        )
        return
    if world.at_once:
        raise NotAtOnce
    with open_pdf(world, path, password) as document:
        yield document


def _held(world: World, path: str) -> Held | None:
    assert world.shelf is not None
    with world.root.file(path) as fd:
        return world.shelf.find(fd, AT_ONCE_BYTES if world.at_once else None)


@contextmanager
def open_pdf(world: World, path: str, password: str) -> Generator[Document]:
    """The PDF at `path`; raises ToolFault when it is empty, corrupt, locked or no PDF."""
    with world.root.file(path) as fd:
        status = os.fstat(fd)
        _refuse_other(fd, path, status.st_size)
        identity = f"pdf:{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"
        try:
            with opened(f"/proc/self/fd/{fd}", password) as raw:
                yield Document(
                    path=shown(path),
                    raw=raw,
                    identity=identity,
                    known=world.known,
                    pages=len(raw),
                )
        except PdfError as error:
            raise _fault(path, error, password) from None


def _refuse_other(fd: int, path: str, size: int) -> None:
    if size == 0:
        raise ToolFault(
            "empty_file",
            f"{path} has 0 bytes.",
            field="file_path",
            fix="There is nothing to read; look for another copy with search_files.",
        )
    if b"%PDF-" not in os.pread(fd, HEADER_WITHIN, 0):
        raise ToolFault(
            "not_a_pdf",
            f"{path} is not a PDF file.",
            field="file_path",
            fix="Check its type with get_file_metadata and use the matching tool.",
        )


def _fault(path: str, error: Exception, password: str) -> ToolFault:
    if getattr(error, "err_code", None) == WRONG_PASSWORD:
        return ToolFault(
            "pdf_encrypted",
            f"{path} is protected, and {'this password is wrong' if password else 'locked'}.",
            field="password",
            fix="Pass `password` if you were given one; otherwise the text cannot be read.",
        )
    return ToolFault(
        "pdf_corrupt",
        f"{path} could not be read ({error}).",
        field="file_path",
        fix="The file is damaged; look for another copy, or inspect it with code_exec.",
    )


def page_number(document: Document, number: int, name: str) -> int:
    """`number` when the document has that page; raises ToolFault naming the valid range."""
    if 1 <= number <= document.pages:
        return number
    raise ToolFault(
        "page_out_of_range",
        f"{document.path} has no page {number}.",
        field=name,
        fix=f"Valid pages: 1 to {document.pages}.",
    )
