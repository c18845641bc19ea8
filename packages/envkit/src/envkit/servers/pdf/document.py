# SPDX-License-Identifier: Apache-2.0
"""A PDF opened for one call, its pages read once and remembered for later calls."""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from envkit.servers.contract import ToolFault
from envkit.servers.filesystem.entries import shown
from envkit.servers.pdf.ink import read_page
from envkit.servers.pdf.library import WRONG_PASSWORD, PdfError, opened, read_fields
from envkit.servers.pdf.page import Kind, PageText, lay_out
from envkit.servers.tool import World

SERVER = "pdf_server"
STOP_EARLY = 0.6
"""Of the deadline: a call that still has pages to do then answers with `next`."""
AS_IMAGE = "use read_page_as_image to see it"
HEADER_WITHIN = 1024
"""Bytes: a PDF says so near its start."""


@dataclass(slots=True, kw_only=True)
class Document:
    """An open PDF."""

    path: str
    raw: Any
    identity: str
    known: Mapping[str, str]
    pages: int
    fresh: dict[str, str] = field(default_factory=dict[str, str])
    """Pages laid out by this call, to be remembered."""

    def page(self, number: int) -> PageText:
        """Page `number` (from 1), from memory when it was read before."""
        key = f"{self.identity}:{number}"
        packed = self.known.get(key) or self.fresh.get(key)
        if packed is None:
            index = number - 1
            laid = lay_out(read_page(self.raw, index), read_fields(self.raw, index))
            packed = self.fresh[key] = f"{laid.kind}\0{laid.text}"
        kind, _, text = packed.partition("\0")
        return PageText(kind=Kind(kind), text=text)


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
