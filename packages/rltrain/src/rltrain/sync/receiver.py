# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""The weight-transfer engine inside each rank of an engine.

Contract: it loads what it is sent as vLLM loads a checkpoint, layer by layer into the memory that
is there, and can then say of every tensor whether it is held (`Ledger`). Whoever joins says by
which method; another trainer may join after the first has gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from vllm.distributed.weight_transfer.base import (
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.model_executor.model_loader.reload import (
    finalize_layerwise_reload,
    initialize_layerwise_reload,
)

from rltrain.sync.buckets import Item, unpacked
from rltrain.sync.group import Group, Meeting, joined
from rltrain.sync.held import refresh
from rltrain.sync.ledger import Ledger


@dataclass
class Joining(WeightTransferInitInfo):
    """Where to meet the trainer; nowhere, where weights come as files."""

    meeting: dict[str, Any] | None = None


@dataclass
class Arriving(WeightTransferUpdateInfo):
    """What is in the next message."""

    items: list[list[Any]]
    file: str = ""


class Receiver(WeightTransferEngine[Joining, Arriving]):
    """Of one rank."""

    init_info_cls = Joining
    update_info_cls = Arriving
    supports_draft_weight_update = False

    def __init__(self, *told: Any) -> None:
        super().__init__(*told)
        self._group: Group | None = None
        self._ledger: Ledger | None = None
        self.report: dict[str, Any] | None = None
        """Of the last update."""

    def init_transfer_engine(self, init_info: Joining) -> None:
        """Meet the trainer."""
        self._group = None
        if init_info.meeting is not None:
            parallel = self.parallel_config
            mine = parallel.data_parallel_index * parallel.world_size + parallel.rank
            self._group = joined(Meeting(**init_info.meeting), 1 + mine)

    def start_weight_update(self) -> None:
        """Make layers ready to be loaded again."""
        self.report = None
        if self.device.type == "cpu":
            _forget_kernels(self.model)
        self._ledger = Ledger(self.model)
        initialize_layerwise_reload(self.model)
        self._ledger.prepared()

    def update_weights(self, update_info: dict[str, Any]) -> None:
        """Receive a message and load what is in it."""
        self.receive_weights(self.parse_update_info(update_info))
        if self.device.type != "cpu":
            torch.accelerator.synchronize()

    def receive_weights(self, update_info: Arriving) -> None:
        """One bucket."""
        assert self._ledger is not None
        items = [Item.of(each) for each in update_info.items]
        self._ledger.load(self._arrived(items, update_info.file))

    def _arrived(self, items: list[Item], file: str) -> list[tuple[str, Tensor]]:
        if file:
            there = load_file(file)
            return [(item.name, there[item.name]) for item in items]
        if self._group is None:
            raise RuntimeError("no trainer has joined")
        last = items[-1]
        size = -(-(last.start + last.bytes) // 16) * 16
        buffer = torch.empty(size, dtype=torch.uint8, device=self._group.device)
        self._group.broadcast(buffer)
        return unpacked(buffer, items)

    def finish_weight_update(self) -> None:
        """Put layers into the form that is computed with, and compare."""
        assert self._ledger is not None
        finalize_layerwise_reload(self.model, self.model_config)
        refresh(self.model)
        self.report = self._ledger.report()
        self._ledger = None

    def shutdown(self) -> None:
        """Leave."""
        self._group = None


def _forget_kernels(model: torch.nn.Module) -> None:
    """vLLM 0.32 packs experts for the CPU only where a layer has no kernel yet, and leaves the old
    ones in use after an update that answers 200."""
    for module in model.modules():
        method = getattr(module, "quant_method", None)
        if getattr(method, "moe_kernel", None) is not None:
            method.moe_kernel = None  # type: ignore[union-attr]
