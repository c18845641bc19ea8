# SPDX-License-Identifier: Apache-2.0
"""A world's files to a tar stream and back, beneath their roots.

In the archive the roots are named `filesystem` and `.apps_data`, as the peer names them. Writing
walks by descriptor and follows no symbolic link; reading places every file beneath its root and
refuses what is neither file, folder nor symbolic link.
"""

import os
import tarfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import IO

from envkit.servers.confine import Root
from envkit.servers.contract import ToolFault
from envkit.servers.files import changing, make_folders, place
from envkit.servers.filesystem.entries import Entry, entries

NAMES = ("filesystem", ".apps_data")
COPY_BYTES = 1 << 20


def pack(roots: Mapping[str, Root], out: IO[bytes]) -> int:
    """Write every root into `out`; returns the number of files."""
    count = 0
    with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for name, root in roots.items():
            archive.addfile(_header(name, os.fstat(root.fd), tarfile.DIRTYPE))
            with root.folder("/") as fd:
                count += _pack_folder(archive, fd, name)
    return count


def _pack_folder(archive: tarfile.TarFile, folder: int, prefix: str) -> int:
    count = 0
    for entry in entries(folder):
        path = f"{prefix}/{entry.name}"
        if entry.kind == "link":
            header = _header(path, os.stat(entry.name, dir_fd=folder, follow_symlinks=False))
            header.type = tarfile.SYMTYPE
            header.linkname = os.readlink(entry.name, dir_fd=folder)
            archive.addfile(header)
        elif entry.kind in ("file", "folder"):
            count += _pack_open(archive, folder, entry, path)
    return count


def _pack_open(archive: tarfile.TarFile, folder: int, entry: Entry, path: str) -> int:
    kind = os.O_DIRECTORY if entry.kind == "folder" else os.O_NONBLOCK
    try:
        fd = os.open(entry.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | kind, dir_fd=folder)
    except FileNotFoundError:
        return 0
    try:
        if entry.kind == "folder":
            archive.addfile(_header(path, os.fstat(fd), tarfile.DIRTYPE))
            return _pack_folder(archive, fd, path)
        header = _header(path, os.fstat(fd))
        header.size = os.fstat(fd).st_size
        with os.fdopen(os.dup(fd), "rb") as file:
            archive.addfile(header, file)
        return 1
    finally:
        os.close(fd)


def _header(path: str, status: os.stat_result, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    header = tarfile.TarInfo(path)
    header.type = kind
    header.mode = status.st_mode & 0o777
    header.mtime = int(status.st_mtime)
    return header


def unpack(roots: Mapping[str, Root], source: IO[bytes], starting: Callable[[], None]) -> int:
    """Place every member of the tar stream `source`; returns the number of files.

    A single root takes members by their own names; several take them by their first part.
    Raises ToolFault naming the member that cannot be placed.
    """
    count = 0
    try:
        with tarfile.open(fileobj=source, mode="r|*") as archive:
            for member in archive:
                root, path = _target(roots, member.name)
                if path != "/":
                    count += _unpack_one(archive, member, root, path, starting)
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise ToolFault(
            "bad_archive",
            f"The body is not a readable tar archive ({error}).",
            fix="Send a tar or tar.gz stream.",
            applied="unknown",
        ) from None
    return count


def _target(roots: Mapping[str, Root], name: str) -> tuple[Root, str]:
    parts = [part for part in PurePosixPath(name.lstrip("/")).parts if part != "."]
    if len(roots) == 1:
        return next(iter(roots.values())), "/" + "/".join(parts)
    if parts and parts[0] in roots:
        return roots[parts[0]], "/" + "/".join(parts[1:])
    raise ToolFault(
        "bad_archive",
        f"The member {name[:200]!r} is in none of {', '.join(roots)}.",
        fix="Name one with ?subsystem=filesystem, or put members below these names.",
        applied="unknown",
    )


def _unpack_one(
    archive: tarfile.TarFile,
    member: tarfile.TarInfo,
    root: Root,
    path: str,
    starting: Callable[[], None],
) -> int:
    if member.isdir():
        make_folders(root, path, starting, "archive")
        return 0
    make_folders(root, str(PurePosixPath(path).parent), starting, "archive")
    if member.issym():
        with root.parent(path, field="archive") as (fd, name), changing(path, "archive"):
            os.symlink(member.linkname, name, dir_fd=fd)
        return 0
    content = archive.extractfile(member) if member.isreg() else None
    if content is None:
        raise ToolFault(
            "bad_archive",
            f"The member {member.name[:200]!r} is neither file, folder nor symbolic link.",
            fix="Leave it out.",
            applied="unknown",
        )
    place(
        root,
        path,
        _pieces(content),
        overwrite=True,
        starting=starting,
        field="archive",
        mode=member.mode & 0o777,
        mtime=int(member.mtime),
    )
    return 1


def _pieces(content: IO[bytes]) -> Iterator[bytes]:
    while piece := content.read(COPY_BYTES):
        yield piece
