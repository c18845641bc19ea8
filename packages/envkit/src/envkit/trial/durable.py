# SPDX-License-Identifier: Apache-2.0
"""Files that are there whole or not at all, and still there after the power went."""

from __future__ import annotations

import os
from pathlib import Path


def write_durably(path: Path, data: bytes) -> None:
    """Write a file under another name, and give it its own once its bytes are on the disk.

    Raises:
        OSError: it could not be written; what was there before is as it was.
    """
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Put the names in a directory on the disk: a renamed file is there by its name alone."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
