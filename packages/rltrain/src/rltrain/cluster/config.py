# SPDX-License-Identifier: Apache-2.0
"""Nodes, engines, and how a model is cut over them.

Contract: a placement that its GPUs cannot hold or divide is refused with the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class MegatronConfig:
    """How Megatron cuts the policy over the training GPUs."""

    tp: int = 1
    """Ranks that share each matrix: tensor parallel."""
    ep: int = 1
    """Ranks that share the experts of a layer: expert parallel."""
    pp: int = 1
    """Stages of layers: pipeline parallel."""
    cp: int = 1
    """Ranks that share each sequence: context parallel."""
    etp: int = 1
    """Ranks that share each expert's matrices: expert tensor parallel."""

    def __post_init__(self) -> None:
        for name in ("tp", "ep", "pp", "cp", "etp"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)} is below 1")

    @property
    def replica(self) -> int:
        """Ranks that hold one copy of what is no expert."""
        return self.tp * self.pp * self.cp

    @property
    def expert_replica(self) -> int:
        """Ranks that hold one copy of the experts."""
        return self.ep * self.etp * self.pp


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """Where engines and trainer run."""

    backend: Literal["fsdp", "megatron"] = "fsdp"
    """Of the trainer."""
    gpus_per_node: int = 8
    inference_nodes: int = 1
    training_nodes: int = 1
    engines: int = 1
    engine_tp: int = 1
    """GPUs of each engine."""
    megatron: MegatronConfig | None = None
    """Of backend megatron, which needs it."""
    offload_optimizer: bool = False
    """Keep the optimizer's state in the memory of the CPUs and step there."""

    def __post_init__(self) -> None:
        counts = ("gpus_per_node", "inference_nodes", "training_nodes", "engines", "engine_tp")
        for name in counts:
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)} is below 1")
        if self.engine_gpus > self.inference_gpus:
            raise ValueError(
                f"engines: {self.engines} of {self.engine_tp} GPUs are {self.engine_gpus}, and"
                f" {self.inference_nodes} inference_nodes have {self.inference_gpus}"
            )
        if (self.backend == "megatron") != (self.megatron is not None):
            raise ValueError("megatron: backend megatron needs this table, and no other takes it")
        if self.megatron is not None:
            _expect_divided(self.megatron, self.training_gpus)

    @property
    def inference_gpus(self) -> int:
        """There are so many for engines."""
        return self.inference_nodes * self.gpus_per_node

    @property
    def engine_gpus(self) -> int:
        """Engines take so many."""
        return self.engines * self.engine_tp

    @property
    def training_gpus(self) -> int:
        """The trainer has so many."""
        return self.training_nodes * self.gpus_per_node


def _expect_divided(megatron: MegatronConfig, gpus: int) -> None:
    for axes, ranks in (
        ("tp x pp x cp", megatron.replica),
        ("ep x etp x pp", megatron.expert_replica),
    ):
        if gpus % ranks:
            raise ValueError(
                f"megatron: {axes} = {ranks} does not divide the {gpus} training GPUs, so no whole"
                " number of copies fits"
            )
