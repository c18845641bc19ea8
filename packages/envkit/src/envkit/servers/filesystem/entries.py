# SPDX-License-Identifier: Apache-2.0
"""What one folder or file is, without following symbolic links."""

import mimetypes
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from envkit.servers.tool import NotAtOnce

SERVER = "filesystem_server"
AT_ONCE_ENTRIES = 400
"""Of a folder or a tree: looking at so many takes some milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One name in a folder."""

    name: str
    kind: str
    """"folder", "file", "link" (symbolic) or "other"."""
    size: int

    @property
    def media_type(self) -> str:
        """Guessed from the name; `unknown` when it says nothing."""
        return mimetypes.guess_type(self.name)[0] or "unknown"


def kind_of(mode: int) -> str:
    """The kind of an entry from its mode."""
    if stat.S_ISDIR(mode):
        return "folder"
    if stat.S_ISREG(mode):
        return "file"
    return "link" if stat.S_ISLNK(mode) else "other"


def entries(folder_fd: int, *, at_once: bool = False) -> list[Entry]:
    """What the folder holds, by name; an entry that vanishes meanwhile is left out.

    Raises NotAtOnce where it must be at once and there are too many.
    """
    names = os.listdir(folder_fd)
    if at_once and len(names) > AT_ONCE_ENTRIES:
        raise NotAtOnce
    found: list[Entry] = []
    for name in sorted(names):
        try:
            status = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
        except OSError:
            continue
        found.append(Entry(name=name, kind=kind_of(status.st_mode), size=status.st_size))
    return found


def walk_files(folder_fd: int, prefix: str) -> Iterator[tuple[str, Entry]]:
    """Every entry below the folder as (path, entry), depth first, crossing no symbolic link."""
    for entry in entries(folder_fd):
        path = f"{prefix.rstrip('/')}/{entry.name}"
        yield path, entry
        if entry.kind != "folder":
            continue
        try:
            below = os.open(
                entry.name,
                os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC,
                dir_fd=folder_fd,
            )
        except OSError:
            continue
        try:
            yield from walk_files(below, path)
        finally:
            os.close(below)


def shown(path: str) -> str:
    """A path as tools print it: always with a leading slash."""
    return "/" + path.strip("/")
