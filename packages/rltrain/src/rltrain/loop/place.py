# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Where on a Ray cluster trainer, engines and crews go.

Ranks of the trainer are kept together, engines are spread, and every node has one crew. On GPUs a
rank has one, an engine as many as it is cut over; on CPUs each counts as one of them.

Contract: what does not fit is refused with what is wanted and what there is, before anything runs.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from rltrain.cluster.config import ClusterConfig
from rltrain.refused import Refused

PLACE_S: Final = 120.0
"""For Ray to reserve what is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Options of actors, as Ray takes them."""

    group: Any
    """The placement group: ranks first, then engines."""
    ranks: int
    bundles: tuple[Mapping[str, float], ...]
    nodes: tuple[str, ...]
    """Ids of those that have crews."""

    def of_rank(self, rank: int) -> dict[str, Any]:
        """Of a rank of the trainer."""
        return self._bundle(rank)

    def of_engine(self, number: int) -> dict[str, Any]:
        """Of an engine."""
        return self._bundle(self.ranks + number)

    def of_crew(self, node: str) -> dict[str, Any]:
        """Of the crew of a node."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return {
            "num_cpus": 0,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node_id=node, soft=False),
        }

    def _bundle(self, index: int) -> dict[str, Any]:
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        bundle = self.bundles[index]
        return {
            "num_cpus": bundle.get("CPU", 0),
            "num_gpus": bundle.get("GPU", 0),
            "scheduling_strategy": PlacementGroupSchedulingStrategy(
                placement_group=self.group, placement_group_bundle_index=index
            ),
        }


@contextmanager
def placed(ray: Any, cluster: ClusterConfig, engines: int) -> Generator[Places]:
    """Reserve a place for every rank and for so many engines.

    Raises:
        Refused: they do not fit.
    """
    from ray.util.placement_group import placement_group, remove_placement_group

    bundles = _bundles(cluster, engines)
    _expect_room(ray.cluster_resources(), bundles)
    group = placement_group([dict(each) for each in bundles], strategy="PACK")
    try:
        if not group.wait(PLACE_S):
            raise Refused(
                f"cluster: Ray did not reserve {_shown(bundles)} in {PLACE_S:g} s; other jobs may"
                " hold them"
            )
        nodes = sorted(each["NodeID"] for each in ray.nodes() if each["Alive"])
        yield Places(group=group, ranks=cluster.training_ranks, bundles=bundles, nodes=tuple(nodes))
    finally:
        remove_placement_group(group)


def _bundles(cluster: ClusterConfig, engines: int) -> tuple[Mapping[str, float], ...]:
    ranks = cluster.training_ranks
    if not cluster.gpus_per_node:
        return ({"CPU": 1.0},) * (ranks + engines)
    engine = {"GPU": float(cluster.engine_tp), "CPU": 1.0}
    return ({"GPU": 1.0, "CPU": 1.0},) * ranks + (engine,) * engines


def _expect_room(there: Mapping[str, float], bundles: tuple[Mapping[str, float], ...]) -> None:
    for kind in ("GPU", "CPU"):
        wanted = sum(each.get(kind, 0.0) for each in bundles)
        if wanted > there.get(kind, 0.0):
            raise Refused(
                f"cluster: trainer and engines want {wanted:g} {kind}s, and Ray has"
                f" {there.get(kind, 0.0):g}; lower cluster.engines or the nodes, or add some"
            )


def _shown(bundles: tuple[Mapping[str, float], ...]) -> str:
    return f"{len(bundles)} places"
