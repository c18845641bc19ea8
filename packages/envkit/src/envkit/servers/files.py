# SPDX-License-Identifier: Apache-2.0
"""Writing files so that a killed call leaves the old one or the new one, never a piece.

Data goes to a file without a name (or a hidden one where the file system has none), is flushed to
disk, and gets its name in one step; then it is read back and compared.
"""

import contextlib
import ctypes
import errno
import os
import secrets
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import PurePosixPath

from envkit.servers.confine import Root
from envkit.servers.contract import ToolFault

RENAME_NOREPLACE = 1
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A file that is now in place."""

    size: int
    replaced: bool


def make_folders(root: Root, path: str, starting: Callable[[], None], field: str) -> int:
    """Create the folder `path` and those above it; returns how many were created."""
    made = 0
    relative = PurePosixPath(root.relative(path, field))
    for folder in [*reversed(relative.parents), relative]:
        try:
            os.close(root.opener(root.fd, str(folder), os.O_PATH | os.O_DIRECTORY, 0))
            continue
        except FileNotFoundError:
            pass
        except OSError:
            with root.folder(str(folder), field=field):
                continue
        with root.parent(str(folder), field=field) as (fd, name), changing(path, field):
            starting()
            os.mkdir(name, 0o777, dir_fd=fd)
            made += 1
    return made


def place(
    root: Root,
    path: str,
    chunks: Iterable[bytes],
    *,
    overwrite: bool,
    starting: Callable[[], None],
    field: str = "file_path",
    mode: int = 0o644,
    mtime: int | None = None,
) -> Placed:
    """Put a file at `path`; raises ToolFault when it exists and `overwrite` is false.

    `mtime` is its time of change in whole seconds; now when it is None.
    """
    with root.parent(path, field=field) as (folder, name), changing(path, field):
        existed = _existing(folder, name, path, overwrite=overwrite, field=field)
        with _nameless(folder, mode) as (fd, hidden):
            digest, size = _fill(fd, chunks)
            if mtime is not None:
                os.utime(fd, (mtime, mtime))
            starting()
            _name(fd, hidden, folder, name, path, overwrite=overwrite, field=field)
        os.fsync(folder)
        _verify(folder, name, path, digest)
    return Placed(size=size, replaced=existed)


def _existing(folder: int, name: str, path: str, *, overwrite: bool, field: str) -> bool:
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if (status.st_mode & 0o170000) == 0o040000:
        raise ToolFault("not_a_file", f"{path} is a folder.", field=field, fix="Name a file in it.")
    if not overwrite:
        raise exists(path, field)
    return True


def exists(path: str, field: str) -> ToolFault:
    """The refusal to overwrite."""
    return ToolFault(
        "already_exists",
        f"{path} already exists; nothing was changed.",
        field=field,
        fix="Pass overwrite=true to replace it, or choose another name.",
    )


@contextlib.contextmanager
def _nameless(folder: int, mode: int) -> Generator[tuple[int, str]]:
    """A writable file without a name, or a hidden one; yields (descriptor, hidden name or "")."""
    flags = os.O_RDWR | os.O_CLOEXEC
    hidden = ""
    try:
        fd = os.open(".", flags | os.O_TMPFILE, mode, dir_fd=folder)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT):
            raise
        hidden = f".envkit-{secrets.token_hex(8)}"
        fd = os.open(hidden, flags | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode, dir_fd=folder)
    try:
        yield fd, hidden
    finally:
        os.close(fd)
        if hidden:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(hidden, dir_fd=folder)


def _fill(fd: int, chunks: Iterable[bytes]) -> tuple[bytes, int]:
    digest, size = sha256(), 0
    for chunk in chunks:
        view = memoryview(chunk)
        digest.update(view)
        size += len(view)
        while view:
            view = view[os.write(fd, view) :]
    os.fsync(fd)
    return digest.digest(), size


def _name(
    fd: int, hidden: str, folder: int, name: str, path: str, *, overwrite: bool, field: str
) -> None:
    """Give the written file its name, in one step."""
    step = hidden or (f".envkit-{secrets.token_hex(8)}" if overwrite else name)
    if not hidden:
        try:
            os.link(f"/proc/self/fd/{fd}", step, dst_dir_fd=folder, follow_symlinks=True)
        except FileExistsError:
            raise exists(path, field) from None
    if step == name:
        return
    try:
        rename(folder, step, folder, name, replace=overwrite)
    except FileExistsError:
        raise exists(path, field) from None
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(step, dir_fd=folder)
        raise


def rename(from_fd: int, old: str, to_fd: int, new: str, *, replace: bool) -> None:
    """Rename between folders; FileExistsError when something is there and `replace` is false."""
    if replace:
        os.rename(old, new, src_dir_fd=from_fd, dst_dir_fd=to_fd)
        return
    flags = RENAME_NOREPLACE
    if _libc.renameat2(from_fd, os.fsencode(old), to_fd, os.fsencode(new), flags) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), new)


def _verify(folder: int, name: str, path: str, digest: bytes) -> None:
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(fd, "rb") as written:
        found = sha256()
        while chunk := written.read(1 << 20):
            found.update(chunk)
    if found.digest() != digest:
        raise ToolFault(
            "write_not_verified",
            f"{path} was written, but holds something else now.",
            fix="Another process changed it at the same time; read it, then write again.",
            applied="yes",
        )


@contextlib.contextmanager
def changing(path: str, field: str) -> Generator[None]:
    """The boundary where the system's refusals to write become faults of the call."""
    try:
        yield
    except OSError as error:
        code, message, fix = _REFUSALS.get(
            error.errno or 0, ("io_error", f"could not be written ({error.strerror})", "Try again.")
        )
        raise ToolFault(code, f"{path} {message}.", field=field, fix=fix) from None


_REFUSALS = {
    errno.ENOSPC: ("disk_full", "does not fit: the disk is full", "Remove files you do not need."),
    errno.EDQUOT: ("disk_full", "does not fit: the quota is used up", "Remove some files."),
    errno.EACCES: ("permission_denied", "may not be changed", "Choose another place."),
    errno.EPERM: ("permission_denied", "may not be changed", "Choose another place."),
    errno.EROFS: ("permission_denied", "is on a read-only disk", "Choose another place."),
    errno.EEXIST: ("already_exists", "already exists", "Choose another name."),
    errno.ENOTEMPTY: ("already_exists", "is a folder that is not empty", "Choose another name."),
    errno.EISDIR: ("not_a_file", "is a folder", "Name a file in it."),
    errno.EXDEV: ("path_outside_root", "is on another disk", "Copy it instead."),
    errno.EINVAL: ("invalid_path", "cannot be moved into itself", "Choose another place."),
    errno.ENAMETOOLONG: ("invalid_path", "is too long a name", "Use a shorter name."),
    errno.ENOENT: ("not_found", "is gone", "List the folder to see what is there."),
}
