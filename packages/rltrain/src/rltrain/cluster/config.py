# SPDX-License-Identifier: Apache-2.0
"""Nodes, engines, and how a model is cut over them.

Contract: a placement that its GPUs cannot hold or divide is refused with the numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


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

    address: str = ""
    """Of a Ray cluster that is there; empty to start one on this machine."""
    backend: Literal["fsdp", "megatron"] = "fsdp"
    """Of the trainer."""
    gpus_per_node: int = 8
    """0: engines and trainer compute on CPUs."""
    ranks: int = 1
    """Processes of a trainer on CPUs; on GPUs each has one."""
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
        counts = ("ranks", "inference_nodes", "training_nodes", "engines", "engine_tp")
        for name in counts:
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: {getattr(self, name)} is below 1")
        if self.gpus_per_node < 0:
            raise ValueError(f"gpus_per_node: {self.gpus_per_node} is below 0")
        if not self.gpus_per_node and (self.engine_tp > 1 or self.megatron):
            raise ValueError("gpus_per_node: 0, and engine_tp above 1 and megatron need GPUs")
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
        return self.engines * self.engine_tp if self.gpus_per_node else 0

    @property
    def training_gpus(self) -> int:
        """The trainer has so many."""
        return self.training_nodes * self.gpus_per_node

    @property
    def training_ranks(self) -> int:
        """Processes that the trainer is."""
        return self.training_gpus or self.ranks


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


HERE: Final = ClusterConfig(gpus_per_node=0)
"""One engine and one rank on this machine's CPUs."""
