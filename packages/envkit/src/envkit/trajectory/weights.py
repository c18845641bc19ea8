# SPDX-License-Identifier: Apache-2.0
"""The digest of a model's weights: which policy sampled.

Contract: it depends on names, types, shapes and values of the tensors alone, not on how they are
spread over files, on their order there or on what else a file says of itself. Files are read once
from end to end; no tensor is held in memory. What is damaged or missing is one line.

The format is that of safetensors: eight bytes with the length of a header in JSON, the header, and
behind it the tensors' bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from envkit.fault import HarnessError

INDEX: Final = "model.safetensors.index.json"
"""Names the file of each tensor, where there are several; files that it does not name are left."""
CHUNK: Final = 2**22
HEADER_MOST: Final = 100_000_000
"""Bytes; the format allows no more."""

type Read = Callable[[int, int], None]
"""Told how many of how many bytes have been read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tensor:
    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int
    """Bytes of its file."""


def weight_files(directory: Path) -> list[Path]:
    """The files that hold a model's weights, none where there are none.

    Raises:
        HarnessError: one that its index names is missing, or the index cannot be read.
    """
    index = directory / INDEX
    if not index.exists():
        return sorted(directory.glob("*.safetensors"))
    try:
        mapped: Mapping[str, str] = json.loads(index.read_bytes())["weight_map"]
        files = [directory / name for name in sorted(set(mapped.values()))]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unreadable(index, "is no index of weights") from error
    for file in files:
        if not file.is_file():
            raise _unreadable(file, f"is missing, and {INDEX} names it")
    return files


def weights_digest(directory: Path, read: Read = lambda done, of: None) -> str:
    """sha256, in hexadecimal, over each tensor's name, type, shape and sha256, by name.

    Raises:
        HarnessError: there are no weights, or a file of them is damaged; the message names it.
    """
    files = weight_files(directory)
    if not files:
        raise _unreadable(directory, "holds no *.safetensors")
    found: dict[str, tuple[str, tuple[int, ...], str]] = {}
    whole, before = sum(_size(file) for file in files), 0
    for file in files:
        for tensor, digest, at in _hashed(file):
            if tensor.name in found:
                raise _unreadable(file, f"holds {tensor.name}, which another file has too")
            found[tensor.name] = (tensor.dtype, tensor.shape, digest)
            read(before + at, whole)
        before += _size(file)
    rows = [[name, *found[name]] for name in sorted(found)]
    return hashlib.sha256(json.dumps(rows, separators=(",", ":")).encode()).hexdigest()


def _hashed(file: Path) -> Iterator[tuple[_Tensor, str, int]]:
    """Each tensor as it lies in the file, its digest, and where it ends."""
    try:
        with file.open("rb") as opened:
            size = os.fstat(opened.fileno()).st_size
            for tensor in _header(file, opened, size):
                opened.seek(tensor.start)
                yield tensor, _digest(file, opened, tensor.stop - tensor.start), tensor.stop
    except OSError as error:
        raise _unreadable(file, error.strerror or "cannot be read") from error


def _digest(file: Path, opened: BinaryIO, length: int) -> str:
    digest = hashlib.sha256()
    while length:
        chunk = opened.read(min(CHUNK, length))
        if not chunk:
            raise _unreadable(file, "is cut off")
        digest.update(chunk)
        length -= len(chunk)
    return digest.hexdigest()


def _header(file: Path, opened: BinaryIO, size: int) -> list[_Tensor]:
    prefix = opened.read(8)
    length = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else HEADER_MOST + 1
    if length > min(HEADER_MOST, size - 8):
        raise _unreadable(file, "is no safetensors file, or cut off")
    begin = 8 + length
    try:
        told = cast("dict[str, dict[str, Any]]", json.loads(opened.read(length)))
        tensors = [
            _Tensor(
                name=name,
                dtype=str(each["dtype"]),
                shape=tuple(map(int, each["shape"])),
                start=begin + int(each["data_offsets"][0]),
                stop=begin + int(each["data_offsets"][1]),
            )
            for name, each in told.items()
            if name != "__metadata__"
        ]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise _unreadable(file, "is no safetensors file: its header cannot be read") from error
    tensors.sort(key=lambda each: (each.start, each.stop))
    _expect_whole(file, tensors, begin, size)
    return tensors


def _expect_whole(file: Path, tensors: list[_Tensor], begin: int, size: int) -> None:
    """Tensors lie one after the other, up to the end of the file."""
    at = begin
    for tensor in tensors:
        bits = 8 * (tensor.stop - tensor.start)
        if tensor.start != at or bits < 0 or bits % max(1, math.prod(tensor.shape)):
            raise _unreadable(file, f"is damaged: its header cannot be right about {tensor.name}")
        at = tensor.stop
    if at != size:
        raise _unreadable(file, "is cut off" if at > size else "has bytes that are no tensor's")


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError as error:
        raise _unreadable(file, error.strerror or "cannot be read") from error


def _unreadable(place: Path, problem: str) -> HarnessError:
    return HarnessError(f"{place}: {problem}; name the directory of a model's whole weights")
