# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Whole tensors out of what is sharded, by the names of the checkpoint they came from.

Contract: all ranks call it together. What LoRA adds is added, so that no reader needs to know of
it: ``W + alpha / rank · B A``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor


def whole(tensor: Tensor) -> Tensor:
    """All of it, on every rank."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


@torch.no_grad()
def weights_of(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Every weight, with what LoRA adds to it."""
    adapted = {
        name: module for name, module in model.named_modules() if hasattr(module, "base_layer")
    }
    for name, parameter in model.named_parameters():
        owner, _, leaf = name.rpartition(".base_layer.")
        if ".lora_" in name:
            continue
        if owner not in adapted:
            yield name, whole(parameter.detach())
            continue
        plain = whole(parameter.detach())
        added = _added(adapted[owner]) if leaf == "weight" else 0.0
        yield f"{owner}.{leaf}", plain + added


def _added(layer: Any) -> Tensor | float:
    """What all adapters of a linear layer add to its weight."""
    added: Tensor | float = 0.0
    for name in layer.active_adapters:
        low, high = whole(layer.lora_A[name].weight), whole(layer.lora_B[name].weight)
        added = added + layer.scaling[name] * (high.detach() @ low.detach())
    return added
