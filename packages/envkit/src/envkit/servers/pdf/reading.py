# SPDX-License-Identifier: Apache-2.0
"""read_pdf_pages: pages as text, until the room or the time is used up, then `next`."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pydantic import Field

from envkit.servers.arguments import Arguments
from envkit.servers.contract import Done, Json, ToolFault
from envkit.servers.pdf.document import (
    AS_IMAGE,
    SERVER,
    STOP_EARLY,
    Document,
    open_text,
    page_number,
)
from envkit.servers.pdf.page import Kind
from envkit.servers.tool import Effect, FileTool, World


class ReadPdfPages(Arguments):
    """Arguments of read_pdf_pages."""

    file_path: str = Field(description="PDF file, starting with /")
    pages: list[int] = Field([], description="page numbers from 1, such as [1, 2]; all when empty")
    first_page: int = Field(1, description="page to start at when `pages` is empty")
    offset: int = Field(0, ge=0, description="characters to skip on the first page read")
    max_chars: int = Field(40_000, ge=200, description="most characters to return")
    password: str = Field("", description="password of a protected file")


@dataclass(slots=True)
class _Reading:
    """Pages read so far in one call."""

    room: int
    parts: list[str] = field(default_factory=list[str])
    read: list[int] = field(default_factory=list[int])
    kinds: list[Kind] = field(default_factory=list[Kind])
    cut_at: int = 0
    """Where the page that no longer fits was cut; 0 when none was."""


def read_pdf_pages(world: World, asked: ReadPdfPages) -> Done:
    """Pages as text, until the room or the time is used up."""
    with open_text(world, asked.file_path, asked.password) as document:
        wanted = _wanted(document, asked)
        reading = _Reading(room=min(asked.max_chars, world.text_chars))
        stop = time.monotonic() + world.seconds * STOP_EARLY
        for position, number in enumerate(wanted):
            if reading.parts and (reading.room <= 0 or time.monotonic() > stop):
                break
            _read_one(document, number, asked.offset if position == 0 else 0, reading)
            if reading.cut_at:
                break
        return _read_done(document, asked, wanted, reading)


def _wanted(document: Document, asked: ReadPdfPages) -> Sequence[int]:
    if asked.pages:
        return [page_number(document, number, "pages") for number in asked.pages]
    return range(page_number(document, asked.first_page, "first_page"), document.pages + 1)


def _read_one(document: Document, number: int, offset: int, reading: _Reading) -> None:
    laid = document.page(number)
    body = laid.text if laid.kind is Kind.TEXT else _empty_page(laid.kind)
    if offset and offset >= len(body):
        raise ToolFault(
            "offset_out_of_range",
            f"Page {number} has {len(body)} characters.",
            field="offset",
            fix=f"Valid offsets: 0 to {max(0, len(body) - 1)}.",
        )
    piece = body[offset : offset + max(reading.room, 1)]
    if reading.parts and offset + len(piece) < len(body):
        reading.room = 0
        return
    reading.parts.append(f"--- Page {number} of {document.pages} ---\n{piece}")
    reading.read.append(number)
    reading.kinds.append(laid.kind)
    reading.room -= len(piece)
    if offset + len(piece) < len(body):
        reading.cut_at = offset + len(piece)


def _empty_page(kind: Kind) -> str:
    if kind is Kind.SCAN:
        return f"[no text on this page: it is a picture (scan); {AS_IMAGE}]"
    return "[this page is blank]"


def _read_done(
    document: Document, asked: ReadPdfPages, wanted: Sequence[int], reading: _Reading
) -> Done:
    following = _next_pages(asked, wanted, reading)
    text = "\n\n".join(reading.parts)
    if following:
        text += f"\n\n[more: call again with {_spelled(following)}]"
    return Done(
        did=f"Read {_numbers(reading.read)} of {document.pages} pages of {document.path}.",
        text=text,
        code=_code(reading.kinds),
        counts={
            "pages": document.pages,
            "read": len(reading.read),
            "without_text": sum(kind is not Kind.TEXT for kind in reading.kinds),
        },
        paths=[document.path],
        next=following,
        remember=document.fresh,
    )


def _next_pages(asked: ReadPdfPages, wanted: Sequence[int], reading: _Reading) -> dict[str, Json]:
    left = wanted[len(reading.read) - bool(reading.cut_at) :]
    if not left:
        return {}
    following: dict[str, Json] = {"file_path": asked.file_path}
    if asked.pages:
        following["pages"] = list(left)
    else:
        following["first_page"] = left[0]
    if reading.cut_at:
        following["offset"] = reading.cut_at
    return following


def _spelled(following: dict[str, Json]) -> str:
    return ", ".join(f"{k}={v}" for k, v in following.items() if k != "file_path")


def _numbers(pages: list[int]) -> str:
    if len(pages) == 1:
        return f"page {pages[0]}"
    if pages == list(range(pages[0], pages[-1] + 1)):
        return f"pages {pages[0]}-{pages[-1]}"
    return f"pages {', '.join(map(str, pages))}"


def _code(kinds: Iterable[Kind]) -> str:
    """`ok`, or why none of the pages has text."""
    found = set(kinds)
    if Kind.TEXT in found:
        return "ok"
    return "scanned" if Kind.SCAN in found else "blank"


TOOL = FileTool(
    server=SERVER,
    name="read_pdf_pages",
    about="Read pages of a PDF as text: columns in reading order, tables as rows of pipes.",
    arguments=ReadPdfPages,
    effect=Effect.READ,
    run=read_pdf_pages,
    document=True,
    at_once=True,
)
