# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""One number of a tensor's values, the same wherever it is reckoned: trainer or engine, CPU or GPU.

Contract: it changes with any value and with any two that change places, but for one chance in 2^64.
What arithmetic cannot tell apart it does not either: the zeros of both signs, and numbers below the
normal ones, which kernels may flush to zero. It guards against mistakes, not against an adversary.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor

CHUNK: Final = 1 << 22
"""Values at a time: beside them there are a few copies of 8 bytes each."""
_SPREAD: Final = -7046029254386353131
_FOLD: Final = -4658895280553007687
_PLACE: Final = 0x2545F4914F6CDD1D
"""Odd numbers of 64 bits with about as many ones as zeros."""
_BITS: Final = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def fingerprint(tensor: Tensor) -> str:
    """Of its values in their places."""
    flat = tensor.detach().reshape(-1)
    total = 0
    for start in range(0, len(flat), CHUNK):
        words = _words(flat[start : start + CHUNK])
        places = torch.arange(start + 1, start + 1 + len(words), device=words.device)
        total += int(_mixed(words + places * _PLACE).sum())
    return f"{(total + len(flat)) % 2**64:016x}"


def unordered(tensor: Tensor) -> int:
    """Of its values wherever they are, zeros left out: what kernels rearrange and pad keeps it.

    Those of parts of a tensor add up to that of the whole.
    """
    flat = tensor.detach().reshape(-1)
    parts = (_mixed(_words(flat[at : at + CHUNK])).sum() for at in range(0, len(flat), CHUNK))
    return sum(map(int, parts)) % 2**64


def _words(flat: Tensor) -> Tensor:
    """Bits as numbers; 0 for all that computes as zero."""
    if flat.is_floating_point() and flat.element_size() > 1:
        flat = flat.masked_fill(flat.abs() < torch.finfo(flat.dtype).tiny, 0.0)
    return flat.contiguous().view(_BITS[flat.element_size()]).long()


def _mixed(words: Tensor) -> Tensor:
    """Spread over 64 bits; 0 stays 0."""
    words = words * _SPREAD
    words = (words ^ (words >> 32)) * _FOLD
    return words ^ (words >> 29)
