# SPDX-License-Identifier: Apache-2.0
"""list_files, get_directory_tree, get_file_metadata."""

import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice

from pydantic import Field

from envkit.servers.arguments import Arguments
from envkit.servers.contract import Done, Json
from envkit.servers.filesystem.entries import (
    AT_ONCE_ENTRIES,
    SERVER,
    Entry,
    entries,
    kind_of,
    shown,
)
from envkit.servers.tool import Effect, FileTool, NotAtOnce, World

PAGE_ENTRIES = 1000
TREE_ENTRIES = 2000


class ListFiles(Arguments):
    """Arguments of list_files."""

    path: str = Field("/", description="folder, starting with /")
    offset: int = Field(0, ge=0, description="entries to skip (see `next`)")


class DirectoryTree(Arguments):
    """Arguments of get_directory_tree."""

    path: str = Field("/", description="folder, starting with /")
    max_depth: int = Field(3, ge=1, le=20, description="levels to show")
    include_files: bool = Field(True, description="show files, not only folders")
    show_size: bool = Field(False, description="show the size of each file in bytes")


class FileMetadata(Arguments):
    """Arguments of get_file_metadata."""

    file_path: str = Field(description="file or folder, starting with /")


def list_files(world: World, asked: ListFiles) -> Done:
    """One line for each entry of a folder."""
    with world.root.folder(asked.path) as fd:
        found = entries(fd, at_once=world.at_once)
    page = found[asked.offset : asked.offset + PAGE_ENTRIES]
    after = asked.offset + len(page)
    following: dict[str, Json] = {}
    if after < len(found):
        following = {"path": asked.path, "offset": after}
    lines = [_line(entry) for entry in page]
    if following:
        lines.append(f"[{len(found) - after} more entries: call again with offset={after}]")
    return Done(
        did=f"Listed {len(page)} of {len(found)} entries in {shown(asked.path)}.",
        text="\n".join(lines) or f"No items found in {shown(asked.path)}",
        code="ok" if found else "empty_folder",
        counts={"entries": len(page), "total": len(found)},
        paths=[f"{shown(asked.path).rstrip('/')}/{entry.name}" for entry in page],
        next=following,
    )


def _line(entry: Entry) -> str:
    if entry.kind == "folder":
        return f"'{entry.name}' (folder)"
    if entry.kind == "file":
        return f"'{entry.name}' ({entry.media_type} file) {entry.size} bytes"
    return f"'{entry.name}' ({'symbolic link' if entry.kind == 'link' else 'not a file'})"


def get_directory_tree(world: World, asked: DirectoryTree) -> Done:
    """Folders and files as a drawn tree."""
    with world.root.folder(asked.path) as fd:
        branches = _branches(fd, "", asked, asked.max_depth, at_once=world.at_once)
        lines = list(islice(branches, AT_ONCE_ENTRIES + 1) if world.at_once else branches)
    if world.at_once and len(lines) > AT_ONCE_ENTRIES:
        raise NotAtOnce
    kept = lines[:TREE_ENTRIES]
    if len(lines) > len(kept):
        kept.append(f"[{len(lines) - len(kept)} more entries: choose a deeper path]")
    return Done(
        did=f"Drew {min(len(lines), TREE_ENTRIES)} of {len(lines)} entries below {asked.path}.",
        text="\n".join([shown(asked.path), *kept]),
        counts={"entries": min(len(lines), TREE_ENTRIES), "total": len(lines)},
    )


def _branches(
    fd: int, indent: str, asked: DirectoryTree, depth: int, *, at_once: bool
) -> Iterator[str]:
    here = entries(fd, at_once=at_once)
    found = [entry for entry in here if entry.kind == "folder" or asked.include_files]
    for entry in found:
        last = entry is found[-1]
        yield f"{indent}{'└── ' if last else '├── '}{_label(entry, show_size=asked.show_size)}"
        if entry.kind != "folder" or depth <= 1:
            continue
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        below = os.open(entry.name, flags, dir_fd=fd)
        try:
            inner = indent + ("    " if last else "│   ")
            yield from _branches(below, inner, asked, depth - 1, at_once=at_once)
        finally:
            os.close(below)


def _label(entry: Entry, *, show_size: bool) -> str:
    if entry.kind == "folder":
        return f"{entry.name}/"
    size = f" ({entry.size} bytes)" if show_size else ""
    return f"{entry.name}{size}" + (" (symbolic link)" if entry.kind == "link" else "")


def get_file_metadata(world: World, asked: FileMetadata) -> Done:
    """Kind, size, type, permissions and times of one file or folder."""
    fd = world.root.open(asked.file_path, os.O_PATH, field="file_path")
    try:
        status = os.fstat(fd)
    finally:
        os.close(fd)
    path = shown(world.root.relative(asked.file_path).removeprefix("."))
    kind = kind_of(status.st_mode)
    entry = Entry(name=path.rsplit("/", 1)[-1], kind=kind, size=status.st_size)
    facts = {
        "Path": path,
        "Type": "directory" if kind == "folder" else kind,
        "MIME type": entry.media_type if kind == "file" else "",
        "Size": f"{status.st_size} bytes",
        "Permissions": f"{stat.filemode(status.st_mode)[1:]} ({status.st_mode & 0o777:03o})",
        "Modified": _time(status.st_mtime),
        "Changed": _time(status.st_ctime),
        "Hard links": str(status.st_nlink),
    }
    return Done(
        did=f"Read the metadata of {path}.",
        text="\n".join(f"{name}: {value}" for name, value in facts.items() if value),
        counts={"bytes": status.st_size},
        paths=[path],
    )


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat(timespec="seconds")


TOOLS = (
    FileTool(
        server=SERVER,
        name="list_files",
        about="List the files and folders in one folder, with type and size.",
        arguments=ListFiles,
        effect=Effect.READ,
        run=list_files,
        at_once=True,
    ),
    FileTool(
        server=SERVER,
        name="get_directory_tree",
        about="Show folders and files below a folder as a tree.",
        arguments=DirectoryTree,
        effect=Effect.READ,
        run=get_directory_tree,
        at_once=True,
    ),
    FileTool(
        server=SERVER,
        name="get_file_metadata",
        about="Kind, size, type, permissions and times of one file or folder.",
        arguments=FileMetadata,
        effect=Effect.READ,
        run=get_file_metadata,
        at_once=True,
    ),
)
