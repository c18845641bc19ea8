# SPDX-License-Identifier: Apache-2.0
"""search_pdf: every match with its page and context, and which pages could not be searched."""

import time
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
from envkit.servers.pdf.searching import matches, pattern
from envkit.servers.tool import Effect, FileTool, World


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
    with open_text(world, asked.file_path, asked.password) as document:
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


TOOL = FileTool(
    server=SERVER,
    name="search_pdf",
    about="Find a phrase in a PDF, also across line ends and table cells; gives the pages.",
    arguments=SearchPdf,
    effect=Effect.READ,
    run=search_pdf,
    document=True,
    at_once=True,
)
