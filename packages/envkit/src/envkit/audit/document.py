# SPDX-License-Identifier: Apache-2.0
"""Open a JSON file of an untrusted directory.

Contract: only regular files inside the root are opened, links are not followed, a pipe never
blocks, and whatever is wrong becomes `ReadError` with one reason a person can act on.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any, Final

import orjson

MAX_BYTES: Final = 2**30
"""A document is held in memory as a whole; larger ones are refused."""


_FLAGS: Final = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")
)
"""Without the flags that a platform lacks: Windows has no O_NOFOLLOW, only Windows has O_BINARY."""


class ReadError(Exception):
    """A candidate cannot be read; the message is the reason."""


def load(path: Path, root: Path) -> Any:
    """The JSON document at ``path``.

    Raises:
        ReadError: not a regular file under ``root``, too large, or not JSON.
    """
    if not path.parent.resolve().is_relative_to(root):
        raise ReadError("links out of the audited directory: not followed")
    return parse(_read(path))


def _read(path: Path) -> bytes:
    try:
        handle = os.open(path, _FLAGS)
    except OSError as error:
        if path.is_symlink():
            raise ReadError("a symbolic link: not followed") from error
        raise ReadError(f"cannot be opened: {error.strerror}") from error
    try:
        _check(os.fstat(handle))
        with open(handle, "rb", closefd=False) as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ReadError(f"cannot be read: {error.strerror}") from error
    finally:
        os.close(handle)


def _check(info: os.stat_result) -> None:
    if not stat.S_ISREG(info.st_mode):
        raise ReadError("not a regular file")
    if info.st_size > MAX_BYTES:
        raise ReadError(f"{info.st_size} bytes, more than the {MAX_BYTES} that are read")


def parse(data: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ReadError: it is empty, binary, cut off or nested too deeply.
    """
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        raise ReadError("empty file")
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        return _lenient(data, error)


def _lenient(data: bytes, strict: orjson.JSONDecodeError) -> Any:
    """What Python's own writer emits beyond the standard: NaN, Infinity, lone surrogates."""
    if b"\0" in data[:4096]:
        raise ReadError("binary, not JSON") from strict
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ReadError(f"not UTF-8 text: byte {error.start}") from error
    if "depth limit" in str(strict) or "ecursion" in str(strict):
        raise ReadError("nested too deeply") from strict
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ReadError("nested too deeply") from error
    except ValueError as error:
        raise ReadError(f"cut off or broken JSON: {strict}") from error
