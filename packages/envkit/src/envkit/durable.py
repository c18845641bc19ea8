# SPDX-License-Identifier: Apache-2.0
"""Files that are there whole or not at all, and still there after the power went.

The steps are functions of their own, so that a test can end the process before and after each.
"""

from __future__ import annotations

import os
from collections.abc import Buffer
from pathlib import Path


def write_durably(path: Path, data: Buffer) -> None:
    """Write a file under another name, and give it its own once its bytes are on the disk.

    Raises:
        OSError: it could not be written; what was there before is as it was.
    """
    part = part_of(path)
    write_part(part, data)
    publish(part, path)
    sync_directory(path.parent)


def part_of(path: Path) -> Path:
    """The name a file has until it is whole."""
    return path.with_name(f".{path.name}.part")


def write_part(part: Path, data: Buffer) -> None:
    """Write bytes and see them onto the disk."""
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        sync_file(file.fileno())


def sync_file(fd: int) -> None:
    """Put what was written on the disk."""
    os.fsync(fd)


def publish(part: Path, path: Path) -> None:
    """Give a file its own name."""
    part.replace(path)


def sync_directory(path: Path) -> None:
    """Put the names in a directory on the disk: a renamed file is there by its name alone."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
