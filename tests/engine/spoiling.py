# SPDX-License-Identifier: Apache-2.0
"""Ways in which weights go wrong between trainer and engine. Nothing of the product knows them.

Names are those of checkpoints, or of the trainer where it keeps experts in one tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

type Named = tuple[str, torch.Tensor]

HEAD = 32
"""Rows of a head in the models of these tests."""


def skipped(weights: Iterable[Named]) -> Iterator[Named]:
    """Two tensors do not come."""
    gone = ("layers.1.self_attn.k_proj.weight", "layers.0.post_attention_layernorm.weight")
    return ((name, tensor) for name, tensor in weights if not name.endswith(gone))


def permuted_experts(weights: Iterable[Named]) -> Iterator[Named]:
    """One expert of the first layer has another's way down."""
    for name, tensor in weights:
        if name.endswith("layers.0.mlp.experts.down_proj"):
            order = torch.arange(len(tensor))
            order[:2] = order[:2].flip(0)
            yield name, tensor[order]
        else:
            yield _OTHER.get(name, name), tensor


_PAIR = [f"model.layers.0.mlp.experts.{number}.down_proj.weight" for number in (0, 1)]
_OTHER = dict(zip(_PAIR, reversed(_PAIR), strict=True))


def wrong_slice(weights: Iterable[Named]) -> Iterator[Named]:
    """A tensor begins one row late."""
    return _changed(weights, "layers.1.mlp.up_proj.weight", lambda each: each.roll(1, 0))


def swapped_heads(weights: Iterable[Named]) -> Iterator[Named]:
    """Two heads ask each other's questions."""

    def swap(each: torch.Tensor) -> torch.Tensor:
        return torch.cat([each[HEAD : 2 * HEAD], each[:HEAD], each[2 * HEAD :]])

    return _changed(weights, "layers.0.self_attn.q_proj.weight", swap)


def off_by_a_percent(weights: Iterable[Named]) -> Iterator[Named]:
    """One tensor is larger than it should be."""
    return _changed(weights, "layers.1.self_attn.o_proj.weight", lambda each: each * 1.01)


def as_sent(weights: Iterable[Named]) -> Iterator[Named]:
    """Nothing is wrong."""
    return iter(weights)


def _changed(
    weights: Iterable[Named], end: str, change: Callable[[torch.Tensor], torch.Tensor]
) -> Iterator[Named]:
    for name, tensor in weights:
        yield name, change(tensor) if name.endswith(end) else tensor


KINDS: dict[str, Callable[[Iterable[Named]], Iterator[Named]]] = {
    "skipped tensors": skipped,
    "permuted experts": permuted_experts,
    "wrong slice": wrong_slice,
    "swapped heads": swapped_heads,
    "one tensor off by 1 %": off_by_a_percent,
    "as sent": as_sent,
}


class Stale:
    """An engine that loads at every sync what it was sent at the one before."""

    def __init__(self) -> None:
        self._before: dict[str, Any] = {}

    def __call__(self, weights: Iterable[Named]) -> Iterator[Named]:
        for name, tensor in weights:
            yield name, self._before.get(name, tensor)
            self._before[name] = tensor.clone()
