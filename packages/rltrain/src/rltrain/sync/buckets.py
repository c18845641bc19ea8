# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Many tensors as few messages: one flat buffer of bytes, and what is where in it.

Contract: `unpacked` of what `packed` made are the tensors, as views of the buffer, on both sides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

ALIGNED: Final = 16
"""Bytes: a view of any type may begin there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A tensor's place in a buffer."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    """Byte."""
    bytes: int

    def plain(self) -> list[Any]:
        """As JSON has it."""
        return [self.name, self.dtype, list(self.shape), self.start, self.bytes]

    @classmethod
    def of(cls, plain: Sequence[Any]) -> Item:
        """As `plain` gave it."""
        name, dtype, shape, start, size = plain
        return cls(name=name, dtype=dtype, shape=tuple(shape), start=start, bytes=size)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Bucket:
    """Tensors that travel together, at least one."""

    items: tuple[Item, ...]
    tensors: tuple[Tensor, ...]

    @property
    def bytes(self) -> int:
        """Of the buffer."""
        return _end(self.items[-1])

    def packed(self, device: torch.device | str) -> Tensor:
        """The buffer."""
        buffer = torch.zeros(self.bytes, dtype=torch.uint8, device=device)
        for item, tensor in zip(self.items, self.tensors, strict=True):
            if item.bytes:
                view(buffer, item).copy_(tensor)
        return buffer


def buckets(weights: Iterable[tuple[str, Tensor]], most: int) -> Iterator[Bucket]:
    """In order; a tensor above so many bytes travels alone."""
    items: list[Item] = []
    tensors: list[Tensor] = []
    for name, tensor in weights:
        if items and _end(items[-1]) + tensor.nbytes > most:
            yield Bucket(items=tuple(items), tensors=tuple(tensors))
            items, tensors = [], []
        start = _end(items[-1]) if items else 0
        dtype = str(tensor.dtype).removeprefix("torch.")
        shape = tuple(tensor.shape)
        items.append(Item(name=name, dtype=dtype, shape=shape, start=start, bytes=tensor.nbytes))
        tensors.append(tensor)
    if items:
        yield Bucket(items=tuple(items), tensors=tuple(tensors))


def unpacked(buffer: Tensor, items: Sequence[Item]) -> list[tuple[str, Tensor]]:
    """The tensors in a buffer."""
    return [(item.name, view(buffer, item)) for item in items]


def view(buffer: Tensor, item: Item) -> Tensor:
    """One tensor in a buffer."""
    part = buffer[item.start : item.start + item.bytes]
    return part.view(getattr(torch, item.dtype)).view(item.shape)


def _end(item: Item) -> int:
    return -(-(item.start + item.bytes) // ALIGNED) * ALIGNED
