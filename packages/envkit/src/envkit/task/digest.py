# SPDX-License-Identifier: Apache-2.0
"""A name for the content of a directory.

The digest covers relative paths, bytes and the executable bit; it does not depend on times,
owners, the order of the disk, or on what Python and editors leave behind.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

_LEFTOVERS = frozenset({"__pycache__", ".pytest_cache", ".ruff_cache", ".DS_Store"})


def files_under(root: Path) -> Iterator[Path]:
    """Every file below `root`, sorted by its relative path; directory links are not entered."""
    found: list[Path] = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in _LEFTOVERS]
        found += [Path(folder, name) for name in names if name not in _LEFTOVERS]
    yield from sorted(found, key=lambda path: path.relative_to(root).as_posix())


def tree_digest(root: Path, extra: Iterable[str] = ()) -> str:
    """SHA-256 over the tree and the `extra` strings, as 64 hex digits."""
    total = hashlib.sha256()
    for path in files_under(root):
        mode = "x" if path.stat().st_mode & 0o111 else "-"
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(root).as_posix()}\0{mode}\0{content}\n".encode())
    for text in extra:
        total.update(f"+{text}\n".encode())
    return total.hexdigest()
