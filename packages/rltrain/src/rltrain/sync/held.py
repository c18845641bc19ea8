# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""What a module of an engine is computed with, which need not be what its parameters hold.

On a CPU a linear layer keeps its weight in an opaque form of a library's and drops the parameter;
experts are put in an order of their kernel's. A linear layer is read by what it does: multiplied
with rows of the identity it gives its weight, exactly, whatever the form. Experts are read as the
values they have, in no order.

Contract: `read` gives a weight in the shape and places that loaders fill, or None where that cannot
be had.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor, nn

ROWS: Final = 512
"""Of the identity at a time."""


def packed(module: nn.Module) -> bool:
    """Whether it computes with something else than its parameter."""
    return hasattr(module, "cpu_linear") and hasattr(module, "quant_method")


def readings(module: nn.Module, leaf: str, shape: torch.Size) -> list[Tensor | None]:
    """A tensor of a module, from every place where it is kept; None for one that tells nothing."""
    kept: Tensor = getattr(module, leaf)
    if leaf != "weight" or not packed(module):
        return [kept.detach() if kept.shape == shape else None]
    found: list[Tensor | None] = [multiplied(module, shape)]
    if kept.numel():  # looked up by row too, as embeddings are
        found.append(kept.detach() if kept.shape == shape else None)
    return found


@torch.no_grad()
def multiplied(module: Any, shape: torch.Size) -> Tensor | None:
    """A linear layer's weight ``[out, in]`` by multiplication."""
    if len(shape) != 2:
        return None
    dtype = module.weight.dtype
    parts: list[Tensor] = []
    for start in range(0, shape[1], ROWS):
        rows = torch.eye(min(ROWS, shape[1] - start), shape[1] - start, dtype=dtype)
        left = torch.zeros(len(rows), start, dtype=dtype)
        parts.append(module.quant_method.apply(module, torch.cat([left, rows], dim=1), None))
    weight = torch.cat(parts).T.contiguous()
    return weight if weight.shape == shape else None


@torch.no_grad()
def refresh(model: nn.Module) -> None:
    """Put tied weights anew into the forms that their modules compute with.

    vLLM does so only for modules that are sent a tensor of their own, and an output layer that is
    tied to the embedding is sent none.
    """
    owners: dict[int, nn.Module] = {}
    modules: list[Any] = [each for each in model.modules() if packed(each)]
    for module in modules:
        if module.weight.numel() and owners.setdefault(id(module.weight), module) is not module:
            module.quant_method.process_weights_after_loading(module)
