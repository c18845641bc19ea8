# SPDX-License-Identifier: Apache-2.0
"""search_files (by name) and grep_files (by content, also inside PDF and office files)."""

import fnmatch
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from pydantic import Field

from envkit.servers.arguments import Arguments
from envkit.servers.contract import Done, Json, ToolFault
from envkit.servers.filesystem.entries import SERVER, Entry, shown, walk_files
from envkit.servers.filesystem.office import SUFFIXES, NotReadable, Piece, pieces
from envkit.servers.pdf.document import open_text
from envkit.servers.pdf.searching import pattern as literal
from envkit.servers.pdf.searching import reduced
from envkit.servers.tool import Effect, FileTool, World

TEXT_BYTES = 32 << 20
LINE_CHARS = 240
STOP_EARLY = 0.6
UNREAD_SHOWN = 20


class SearchFiles(Arguments):
    """Arguments of search_files."""

    pattern: str = Field(min_length=1, description="glob over names, such as *.pdf; or a word")
    path: str = Field("/", description="folder to search, starting with /")
    recursive: bool = Field(True, description="search the folders below, too")
    max_results: int = Field(100, ge=0, description="most paths to return; 0 for all")


class GrepFiles(Arguments):
    """Arguments of grep_files."""

    query: str = Field(min_length=1, description="text to find in the contents of files")
    path: str = Field("/", description="folder to search, starting with /")
    file_pattern: str = Field("*", description="only files whose name matches, such as *.xlsx")
    regex: bool = Field(False, description="the query is a regular expression")
    case_sensitive: bool = Field(False, description="distinguish capital letters")
    max_results: int = Field(50, ge=1, le=500, description="most matches to return")
    start_after: str = Field("", description="path to go on after (see `next`)")


def search_files(world: World, asked: SearchFiles) -> Done:
    """Paths of files and folders by name."""
    with world.root.folder(asked.path) as fd:
        below = list(walk_files(fd, _prefix(world, asked.path)))
    if not asked.recursive:
        depth = _prefix(world, asked.path).rstrip("/").count("/") + 1
        below = [(path, entry) for path, entry in below if path.count("/") == depth]
    found, how = _by_name(below, asked.pattern)
    kept = found[: asked.max_results or None]
    lines = [f"Found {len(found)} file(s) matching '{asked.pattern}'{how}:", *kept]
    if not found:
        lines = [
            f"No files matching '{asked.pattern}' found in {asked.path} ({len(below)} names seen; "
            "this looks at names: use grep_files for contents)"
        ]
    if len(kept) < len(found):
        lines.append(f"(Results limited to {len(kept)})")
    return Done(
        did=f"Found {len(found)} of {len(below)} names below {asked.path}.",
        text="\n".join(lines),
        code="ok" if found else "no_match",
        counts={"matches": len(found), "returned": len(kept), "seen": len(below)},
        paths=kept,
    )


def _prefix(world: World, path: str) -> str:
    return shown(world.root.relative(path).removeprefix("."))


def _by_name(below: list[tuple[str, Entry]], wanted: str) -> tuple[list[str], str]:
    """Matches as a glob, else as part of the name, else as a regular expression."""
    glob = re.compile(fnmatch.translate(wanted.lower()))
    tries: list[tuple[Callable[[str], object], str]] = [(glob.match, "")]
    tries.append((lambda name: wanted.lower() in name, " as part of the name"))
    with suppress(re.error):
        tries.append((re.compile(wanted, re.IGNORECASE).search, " as a regular expression"))
    for matches, how in tries:
        found = [path for path, entry in below if matches(entry.name.lower())]
        if found:
            return found, how
    return [], ""


@dataclass(slots=True)
class _Hits:
    """What one grep has found so far."""

    lines: list[str] = field(default_factory=list[str])
    files: set[str] = field(default_factory=set[str])
    searched: int = 0
    unread: list[str] = field(default_factory=list[str])
    fresh: dict[str, str] = field(default_factory=dict[str, str])
    last: str = ""
    stopped: bool = False


def grep_files(world: World, asked: GrepFiles) -> Done:
    """Matching lines, cells, slides and pages, each with its place."""
    wanted = _wanted(asked)
    hits = _Hits()
    stop = time.monotonic() + world.seconds * STOP_EARLY
    with world.root.folder(asked.path) as fd:
        for path, entry in sorted(walk_files(fd, _prefix(world, asked.path))):
            if entry.kind != "file" or path <= asked.start_after:
                continue
            if not fnmatch.fnmatch(entry.name.lower(), asked.file_pattern.lower()):
                continue
            if len(hits.lines) >= asked.max_results or time.monotonic() > stop:
                hits.stopped = True
                break
            _grep_one(world, path, entry, wanted, hits)
            hits.last = path
    return _grep_done(asked, hits)


def _wanted(asked: GrepFiles) -> re.Pattern[str]:
    if not asked.regex:
        return literal(asked.query, case_sensitive=asked.case_sensitive, whole_word=False)
    try:
        return re.compile(asked.query, 0 if asked.case_sensitive else re.IGNORECASE)
    except re.error as error:
        raise ToolFault(
            "invalid_argument",
            f"`query` is no regular expression ({error}).",
            field="query",
            fix="Escape special characters, or pass regex=false.",
        ) from None


def _grep_one(world: World, path: str, entry: Entry, wanted: re.Pattern[str], hits: _Hits) -> None:
    try:
        for where, text in _pieces(world, path, entry, hits):
            for match in wanted.finditer(reduced(text).text):
                hits.lines.append(f"{path}: {where}: {_around(match)}")
                hits.files.add(path)
        hits.searched += 1
    except NotReadable as error:
        hits.unread.append(f"{path} ({error})")
    except ToolFault as fault:
        hits.unread.append(f"{path} ({fault.code})")


def _pieces(world: World, path: str, entry: Entry, hits: _Hits) -> Iterator[Piece]:
    suffix = PurePosixPath(path).suffix.lower()
    if suffix == ".pdf":
        yield from _pdf_pieces(world, path, hits)
        return
    with world.root.file(path) as fd, os.fdopen(os.dup(fd), "rb") as file:
        if suffix in SUFFIXES:
            yield from pieces(suffix, file)
        elif entry.size > TEXT_BYTES:
            raise NotReadable("too large")
        else:
            yield from _text_pieces(file.read())


def _text_pieces(data: bytes) -> Iterator[Piece]:
    if b"\0" in data[:8192]:
        raise NotReadable("not text")
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), start=1):
        yield f"line {number}", line


def _pdf_pieces(world: World, path: str, hits: _Hits) -> Iterator[Piece]:
    without_text = 0
    with open_text(world, path, "") as document:
        for number in range(1, document.pages + 1):
            text = document.page(number).text
            without_text += not text
            yield f"page {number}", text
        hits.fresh.update(document.fresh)
    if without_text:
        hits.unread.append(f"{path} ({without_text} page(s) without text)")


def _around(match: re.Match[str]) -> str:
    room = max(0, LINE_CHARS - (match.end() - match.start())) // 2
    start, end = max(0, match.start() - room), min(len(match.string), match.end() + room)
    cut = match.string[start : min(end, start + LINE_CHARS)].strip()
    return f"{'...' if start else ''}{cut}{'...' if end < len(match.string) else ''}"


def _grep_done(asked: GrepFiles, hits: _Hits) -> Done:
    kept = hits.lines[: asked.max_results]
    lines = [f'Found {len(hits.lines)} match(es) for "{asked.query}":', *kept]
    if not hits.lines:
        lines = [f'No matches for "{asked.query}" in {hits.searched} file(s).']
    if len(kept) < len(hits.lines):
        lines.append(f"[{len(hits.lines) - len(kept)} more in these files: raise max_results]")
    if hits.unread:
        more = len(hits.unread) - UNREAD_SHOWN
        tail = f" and {more} more" if more > 0 else ""
        lines.append(f"[not searched: {'; '.join(hits.unread[:UNREAD_SHOWN])}{tail}]")
    following: dict[str, Json] = {}
    if hits.stopped:
        following = {**asked.model_dump(exclude_defaults=True), "start_after": hits.last}
        lines.append(f"[more: call again with start_after={hits.last}]")
    return Done(
        did=f"Searched {hits.searched} file(s) below {asked.path}.",
        text="\n".join(lines),
        code="ok" if hits.lines else "no_match",
        counts={
            "matches": len(hits.lines),
            "files": len(hits.files),
            "searched": hits.searched,
            "not_searched": len(hits.unread),
        },
        paths=sorted(hits.files),
        next=following,
        remember=hits.fresh,
    )


TOOLS = (
    FileTool(
        server=SERVER,
        name="search_files",
        about="Find files and folders by name with a glob pattern such as *.xlsx.",
        arguments=SearchFiles,
        effect=Effect.READ,
        run=search_files,
    ),
    FileTool(
        server=SERVER,
        name="grep_files",
        about="Find text in the contents of files: text, csv, pdf, docx, pptx, xlsx.",
        arguments=GrepFiles,
        effect=Effect.READ,
        run=grep_files,
        document=True,
    ),
)
