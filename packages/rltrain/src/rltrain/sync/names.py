# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""From the trainer's tensors to those that an engine's checkpoint has.

transformers keeps the experts of a layer in two tensors; checkpoints, and the loaders of engines,
have three of each expert. Tied weights are there once, under the embedding's name, in both.

Contract: what comes out has the names and the values that ``save_pretrained`` writes. A fused
tensor of a family that is not known here is refused, never sent under a name that no engine reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from torch import Tensor

from rltrain.refused import Refused

type Named = tuple[str, Tensor]
type Split = Callable[[str, Tensor], Iterator[Named]]


def _gate_up(owner: str, fused: Tensor) -> Iterator[Named]:
    """``[E, 2 I, H]``: gates above ups."""
    for number, both in enumerate(fused.unbind()):
        gate, up = both.chunk(2)
        yield f"{owner}.{number}.gate_proj.weight", gate
        yield f"{owner}.{number}.up_proj.weight", up


def _down(owner: str, fused: Tensor) -> Iterator[Named]:
    """``[E, H, I]``"""
    for number, each in enumerate(fused.unbind()):
        yield f"{owner}.{number}.down_proj.weight", each


QWEN: Final[dict[str, Split]] = {"gate_up_proj": _gate_up, "down_proj": _down}
FAMILIES: Final[dict[str, dict[str, Split]]] = {
    "gemma3_text": {},
    "llama": {},
    "mistral": {},
    "qwen2": {},
    "qwen3": {},
    "qwen3_moe": QWEN,
}
"""By ``model_type``; of each, what its fused tensors are made of."""


def checkpoint_names(weights: Iterable[Named], family: str) -> Iterator[Named]:
    """Every tensor as a checkpoint of the family has it; views of what is given.

    Raises:
        Refused: the family is not known, or has a fused tensor that is not.
    """
    if family not in FAMILIES:
        known = ", ".join(FAMILIES)
        raise Refused(f"sync: model_type {family} is not known by name; there are {known}")
    splits = FAMILIES[family]
    for name, tensor in weights:
        owner, _, leaf = name.rpartition(".")
        if not owner.endswith(".experts"):
            yield name, tensor
        elif leaf in splits:
            yield from splits[leaf](owner, tensor)
        else:
            raise Refused(f"sync: {name}: how {family} fuses it is not known; it cannot be sent")
