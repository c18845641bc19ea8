# SPDX-License-Identifier: Apache-2.0
"""read_pdf_pages, search_pdf, read_page_as_image, get_pdf_info."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pydantic import Field

from envkit.servers.arguments import Arguments
from envkit.servers.contract import Done, Json, ToolFault
from envkit.servers.filesystem.reading import sendable
from envkit.servers.pdf.document import Document, open_pdf, page_number
from envkit.servers.pdf.page import Kind
from envkit.servers.pdf.pdfium import facts, outline, render_page
from envkit.servers.pdf.searching import matches, pattern
from envkit.servers.tool import Effect, FileTool, World

SERVER = "pdf_server"
STOP_EARLY = 0.6
"""Of the deadline: a call that still has pages to do then answers with `next`."""
IMAGE_SIDE = 1600
OUTLINE_LINES = 80
AS_IMAGE = "use read_page_as_image to see it"


class ReadPdfPages(Arguments):
    """Arguments of read_pdf_pages."""

    file_path: str = Field(description="PDF file, starting with /")
    pages: list[int] = Field([], description="page numbers from 1, such as [1, 2]; all when empty")
    first_page: int = Field(1, description="page to start at when `pages` is empty")
    offset: int = Field(0, ge=0, description="characters to skip on the first page read")
    max_chars: int = Field(40_000, ge=200, description="most characters to return")
    password: str = Field("", description="password of a protected file")


class SearchPdf(Arguments):
    """Arguments of search_pdf."""

    file_path: str = Field(description="PDF file, starting with /")
    query: str = Field(min_length=1, description="text to find, literally")
    case_sensitive: bool = Field(False, description="distinguish capital letters")
    whole_word: bool = Field(False, description="match whole words only")
    max_results: int = Field(50, ge=1, le=500, description="most matches to return")
    context_chars: int = Field(80, ge=0, le=500, description="characters around each match")
    first_page: int = Field(1, description="page to start at (see `next`)")
    password: str = Field("", description="password of a protected file")


class PageAsImage(Arguments):
    """Arguments of read_page_as_image."""

    file_path: str = Field(description="PDF file, starting with /")
    page_number: int = Field(description="page number from 1")
    password: str = Field("", description="password of a protected file")


class PdfInfo(Arguments):
    """Arguments of get_pdf_info."""

    file_path: str = Field(description="PDF file, starting with /")
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
    with open_pdf(world, asked.file_path, asked.password) as document:
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


@dataclass(slots=True)
class _Search:
    """Matches so far in one call."""

    found: list[str] = field(default_factory=list[str])
    scans: list[int] = field(default_factory=list[int])
    searched: int = 0
    stopped_at: int = 0
    """The page to go on with; 0 when all were searched."""


def search_pdf(world: World, asked: SearchPdf) -> Done:
    """Every match with its page and context."""
    with open_pdf(world, asked.file_path, asked.password) as document:
        page_number(document, asked.first_page, "first_page")
        search = _search(document, asked, time.monotonic() + world.seconds * STOP_EARLY)
        if search.searched == len(search.scans) and not search.stopped_at:
            raise ToolFault(
                "scanned",
                f"{document.path} has no text to search: its pages are pictures.",
                field="file_path",
                fix=f"Look at the pages: {AS_IMAGE}.",
            )
        return _search_done(document, asked, search)


def _search(document: Document, asked: SearchPdf, stop: float) -> _Search:
    search = _Search()
    wanted = pattern(asked.query, case_sensitive=asked.case_sensitive, whole_word=asked.whole_word)
    for number in range(asked.first_page, document.pages + 1):
        if len(search.found) >= asked.max_results or time.monotonic() > stop:
            search.stopped_at = number
            break
        laid = document.page(number)
        search.searched += 1
        if laid.kind is not Kind.TEXT:
            search.scans.append(number)
        hits = matches(laid.text, wanted, asked.context_chars)
        search.found += [f"[Page {number}]: {hit}" for hit in hits]
    return search


def _search_done(document: Document, asked: SearchPdf, search: _Search) -> Done:
    kept = search.found[: asked.max_results]
    lines = [f'Found {len(search.found)} match(es) for "{asked.query}":', ""]
    lines += [f"{number}. {hit}" for number, hit in enumerate(kept, start=1)]
    if not search.found:
        lines = [f'No matches found for "{asked.query}" in {search.searched} page(s).']
        if " OR " in asked.query or " AND " in asked.query:
            lines.append("[the query is taken literally: search one phrase at a time]")
    if len(kept) < len(search.found):
        lines.append(f"[{len(search.found) - len(kept)} more on these pages: raise max_results]")
    if search.scans:
        lines.append(f"[not searched, no text: pages {', '.join(map(str, search.scans[:40]))}]")
    following: dict[str, Json] = {}
    if search.stopped_at:
        following = {
            "file_path": asked.file_path,
            "query": asked.query,
            "first_page": search.stopped_at,
        }
        lines.append(f"[more: call again with first_page={search.stopped_at}]")
    return Done(
        did=f"Searched {search.searched} of {document.pages} pages of {document.path}.",
        text="\n".join(lines),
        code="ok" if search.found else "no_match",
        counts={
            "matches": len(search.found),
            "pages": document.pages,
            "searched": search.searched,
            "without_text": len(search.scans),
        },
        paths=[document.path],
        next=following,
        remember=document.fresh,
    )


def read_page_as_image(world: World, asked: PageAsImage) -> Done:
    """One page as a picture."""
    with open_pdf(world, asked.file_path, asked.password) as document:
        number = page_number(document, asked.page_number, "page_number")
        image, _ = sendable(render_page(document.raw, number - 1, IMAGE_SIDE))
        return Done(
            did=f"Rendered page {number} of {document.pages} of {document.path}.",
            counts={"pages": document.pages},
            paths=[document.path],
            images=[image],
        )


def get_pdf_info(world: World, asked: PdfInfo) -> Done:
    """Page count, metadata and outline."""
    with open_pdf(world, asked.file_path, asked.password) as document:
        marks = outline(document.raw)
        lines = [f"Pages: {document.pages}"]
        lines += [f"{name}: {value}" for name, value in facts(document.raw).items()]
        if marks:
            lines.append("Outline:")
        lines += [
            f"{'  ' * level}- {title} (page {page or 'unknown'})"
            for level, title, page in marks[:OUTLINE_LINES]
        ]
        if len(marks) > OUTLINE_LINES:
            lines.append(f"[{len(marks) - OUTLINE_LINES} more entries]")
        return Done(
            did=f"Read the metadata of {document.path}.",
            text="\n".join(lines),
            counts={"pages": document.pages, "outline": len(marks)},
            paths=[document.path],
        )


TOOLS = (
    FileTool(
        server=SERVER,
        name="read_pdf_pages",
        about="Read pages of a PDF as text: columns in reading order, tables as rows of pipes.",
        arguments=ReadPdfPages,
        effect=Effect.READ,
        run=read_pdf_pages,
        document=True,
    ),
    FileTool(
        server=SERVER,
        name="search_pdf",
        about="Find a phrase in a PDF, also across line ends and table cells; gives the pages.",
        arguments=SearchPdf,
        effect=Effect.READ,
        run=search_pdf,
        document=True,
    ),
    FileTool(
        server=SERVER,
        name="read_page_as_image",
        about="Look at one page of a PDF as an image (scans, charts, signatures).",
        arguments=PageAsImage,
        effect=Effect.READ,
        run=read_page_as_image,
        document=True,
    ),
    FileTool(
        server=SERVER,
        name="get_pdf_info",
        about="Page count, title, author and outline of a PDF.",
        arguments=PdfInfo,
        effect=Effect.READ,
        run=get_pdf_info,
        document=True,
    ),
)
