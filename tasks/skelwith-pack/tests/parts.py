# SPDX-License-Identifier: Apache-2.0
"""The XML parts of an office file, read with bounds and without an office library.

Importing a library costs several times what reading the few parts of a deck does. A file that is
no archive of such parts, or one made to exhaust its reader, is `Unreadable`.
"""

import io
import posixpath
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

MAX_FILE_BYTES = 4 * 1024 * 1024
MAX_UNPACKED_BYTES = 20 * 1024 * 1024

R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"


class Unreadable(Exception):
    """The file cannot be read as an office file of a reasonable size."""


class Parts:
    """The parts of one office file by their name."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        if sum(entry.file_size for entry in archive.infolist()) > MAX_UNPACKED_BYTES:
            raise Unreadable("unpacks to more than it should")
        self._archive = archive
        self._names = set(archive.namelist())

    def xml(self, name: str) -> Element:
        """The part's root element."""
        content = self._archive.read(name)
        if b"<!DOCTYPE" in content or b"\0" in content[:64]:
            raise Unreadable(f"{name} is not what an office program writes")
        return ElementTree.fromstring(content)

    def links(self, name: str) -> dict[str, tuple[str, str]]:
        """What the part refers to: id -> (name of the other part, kind)."""
        folder, base = posixpath.split(name)
        path = posixpath.join(folder, "_rels", f"{base}.rels")
        if path not in self._names:
            return {}
        return {
            str(link.get("Id")): (
                posixpath.normpath(posixpath.join("/", folder, str(link.get("Target"))))[1:],
                str(link.get("Type")).rpartition("/")[2],
            )
            for link in self.xml(path)
        }

    def inner(self, name: str) -> "Parts":
        """The parts of an office file that is embedded as one part."""
        return Parts(zipfile.ZipFile(io.BytesIO(self._archive.read(name))))


@contextmanager
def opened(path: Path) -> Generator[Parts]:
    """The parts of the file at `path`; whatever goes wrong while they are read is `Unreadable`."""
    try:
        if not path.is_file() or path.stat().st_size > MAX_FILE_BYTES:
            raise Unreadable("no file of a reasonable size")
        with zipfile.ZipFile(path) as archive:
            yield Parts(archive)
    except (MemoryError, Unreadable):
        raise
    except Exception as cause:  # a hostile archive or part raises anything
        raise Unreadable(f"{type(cause).__name__}: {cause}") from cause
