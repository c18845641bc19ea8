# SPDX-License-Identifier: Apache-2.0
"""Opening paths so that none leaves its root.

Tool paths start with `/` and mean the root. The kernel resolves them beneath the root's descriptor
(`openat2` with RESOLVE_BENEATH), so `..`, absolute symlinks and a folder swapped for a symlink
while we look cannot lead out. Where the kernel or a filter has no `openat2`, every component is
opened with O_NOFOLLOW and symlinks are refused. Only descriptors are handed out, never host paths.
"""

import ctypes
import difflib
import errno
import os
import stat
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from envkit.servers.contract import ToolFault

SYS_OPENAT2 = 437
RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_BENEATH = 0x08
OPENAT2_TRIES = 8
"""The kernel answers EAGAIN when a folder is renamed while it resolves."""

type Opener = Callable[[int, str, int, int], int]

_libc = ctypes.CDLL(None, use_errno=True)


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


def openat2(root_fd: int, relative: str, flags: int, mode: int = 0) -> int:
    """Open `relative` beneath `root_fd`; raises OSError (EXDEV when it would leave)."""
    how = _OpenHow(flags | os.O_CLOEXEC, mode, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)
    code = errno.EAGAIN
    for _ in range(OPENAT2_TRIES):
        fd = _libc.syscall(
            SYS_OPENAT2, root_fd, os.fsencode(relative), ctypes.byref(how), ctypes.sizeof(how)
        )
        if fd >= 0:
            return fd
        code = ctypes.get_errno()
        if code != errno.EAGAIN:
            break
    raise OSError(code, os.strerror(code), relative)


def walk(root_fd: int, relative: str, flags: int, mode: int = 0) -> int:
    """The same without `openat2`: component by component, following no symlink at all."""
    parts = [part for part in relative.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), relative)
    here = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=root_fd)
    try:
        for part in parts[:-1]:
            step = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            below = os.open(part, step, dir_fd=here)
            os.close(here)
            here = below
        last = parts[-1] if parts else "."
        return os.open(last, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=here)
    finally:
        os.close(here)


def best_opener() -> Opener:
    """`openat2` where it works, else `walk`."""
    try:
        os.close(openat2(_cwd(), ".", os.O_PATH))
    except OSError:
        return walk
    return openat2


def _cwd() -> int:
    return -100  # AT_FDCWD


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """A folder that paths are opened beneath."""

    fd: int
    alias: str = ""
    """Another name of the root that agents use, as `/filesystem` in `/filesystem/a.pdf`."""
    opener: Opener = openat2

    def relative(self, path: str, field: str = "path") -> str:
        """`path` without the leading slash and without the alias; `.` for the root itself.

        Raises ToolFault for an empty path or one with a NUL byte.
        """
        if not path.strip() or "\0" in path:
            raise ToolFault(
                "invalid_path",
                "The path is empty or holds a NUL byte.",
                field=field,
                fix="Pass a path that starts with `/`, such as `/report.pdf`.",
            )
        plain = path.lstrip("/")
        alias = self.alias.strip("/")
        if alias and (plain == alias or plain.startswith(f"{alias}/")) and not self._has(alias):
            plain = plain[len(alias) :].lstrip("/")
        return plain or "."

    def _has(self, name: str) -> bool:
        try:
            os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except OSError:
            return False
        return True

    def open(self, path: str, flags: int, mode: int = 0, *, field: str = "path") -> int:
        """A descriptor for `path`; raises ToolFault in the agent's terms."""
        relative = self.relative(path, field)
        try:
            return self.opener(self.fd, relative, flags, mode)
        except OSError as error:
            raise self._fault(error, path, field) from None

    @contextmanager
    def folder(self, path: str, *, field: str = "path") -> Generator[int]:
        """The folder at `path`, open for listing."""
        fd = self.open(path, os.O_RDONLY | os.O_DIRECTORY, field=field)
        try:
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def file(self, path: str, *, field: str = "file_path") -> Generator[int]:
        """The regular file at `path`, open for reading; refuses pipes, devices and folders."""
        fd = self.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY, field=field)
        try:
            mode = os.fstat(fd).st_mode
            if not stat.S_ISREG(mode):
                raise _not_a_file(path, field, folder=stat.S_ISDIR(mode))
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def parent(self, path: str, *, field: str = "path") -> Generator[tuple[int, str]]:
        """The folder that holds `path`, and the last name, for creating or removing it."""
        pure = PurePosixPath(self.relative(path, field))
        if pure.name in ("", "..") or str(pure) == ".":
            raise ToolFault(
                "invalid_path",
                f"{path!r} does not name a file.",
                field=field,
                fix="Pass the full path of a file, such as `/folder/file.txt`.",
            )
        with self.folder(str(pure.parent), field=field) as fd:
            yield fd, pure.name

    def _fault(self, error: OSError, path: str, field: str) -> ToolFault:
        code, what, fix = _REASONS.get(
            error.errno or 0, ("io_error", f"could not be opened ({error.strerror})", "Try again.")
        )
        if code == "not_found":
            fix = self._nearest(path) or fix
        return ToolFault(
            code, f"{path} {what}.", field=field, fix=fix, retryable=code == "io_error"
        )

    def _nearest(self, path: str) -> str:
        """What is there instead: close names in the same folder, or the deepest folder."""
        pure = PurePosixPath(self.relative(path))
        for folder in pure.parents:
            try:
                fd = self.opener(self.fd, str(folder), os.O_RDONLY | os.O_DIRECTORY, 0)
            except OSError:
                continue
            try:
                names = os.listdir(fd)
            finally:
                os.close(fd)
            wanted = pure.relative_to(folder).parts[0]
            near = difflib.get_close_matches(wanted, names, n=3, cutoff=0.6)
            shown = "/" if str(folder) == "." else f"/{folder}"
            if near:
                return f"In {shown} there is: {', '.join(near)}."
            return f"List {shown} to see what is there."
        return ""


_REASONS = {
    errno.ENOENT: ("not_found", "does not exist", "List `/` to see what is there."),
    errno.ENOTDIR: ("not_a_folder", "is not a folder", "Pass a folder, or read it as a file."),
    errno.EISDIR: ("not_a_file", "is a folder", "List it with list_files."),
    errno.EXDEV: ("path_outside_root", "leads outside the files", "Use a path below `/`."),
    errno.ELOOP: ("path_outside_root", "goes through a symbolic link", "Use the real path."),
    errno.EACCES: ("permission_denied", "may not be read or changed", "Use another file."),
    errno.EPERM: ("permission_denied", "may not be changed", "Use another file."),
    errno.ENAMETOOLONG: ("invalid_path", "is too long a name", "Use a shorter name."),
    errno.ENXIO: ("not_a_file", "is a pipe or device", "Pass a regular file."),
}


def _not_a_file(path: str, field: str, *, folder: bool) -> ToolFault:
    what = "is a folder" if folder else "is a pipe or device"
    fix = "List it with list_files." if folder else "Pass a regular file."
    return ToolFault("not_a_file", f"{path} {what}.", field=field, fix=fix)


@contextmanager
def rooted(path: Path, *, alias: str = "") -> Generator[Root]:
    """The root at host path `path`; raises OSError when it cannot be opened."""
    fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield Root(fd=fd, alias=alias, opener=best_opener())
    finally:
        os.close(fd)
