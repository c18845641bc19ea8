# SPDX-License-Identifier: Apache-2.0
"""Which splits of the nodes are compared; on one machine, how many trials at once.

Contract: every one is a placement that its GPUs can hold and divide; the recipe's own is the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from rltrain.cluster.config import ClusterConfig
from rltrain.refused import Refused

MOST = 6
"""Other splits, unless they are asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """One."""

    name: str
    """``10 : 4``, or ``16 at once``."""
    cluster: ClusterConfig
    concurrency: int
    staleness: int
    own: bool
    """The recipe's."""


def splits(recipe: Split, asked: str | None) -> tuple[Split, ...]:
    """The recipe's, and those asked for, as ``8:4,10:4`` or ``8,16``; else some around it, and its
    own with a wider bound of staleness.

    Raises:
        Refused: what is asked for is none.
    """
    if not recipe.cluster.gpus_per_node:
        own = recipe.concurrency
        counts = _counts(asked) if asked else [max(1, own // 2), 2 * own]
        others = [_named(recipe, concurrency=each) for each in counts]
    elif asked:
        others = [_asked(recipe, each) for each in asked.split(",")]
    else:
        others = list(_around(recipe))
    if not asked:
        others = [*others[:MOST], _named(recipe, staleness=2 * recipe.staleness + 1)]
    named = {each.name: each for each in others if each.name != recipe.name}
    return (recipe, *named.values())


def own(cluster: ClusterConfig, concurrency: int, staleness: int) -> Split:
    """As the recipe has it."""
    return Split(
        name=_name(cluster, concurrency),
        cluster=cluster,
        concurrency=concurrency,
        staleness=staleness,
        own=True,
    )


def _name(cluster: ClusterConfig, concurrency: int) -> str:
    if not cluster.gpus_per_node:
        return f"{concurrency} at once"
    return f"{cluster.inference_nodes} : {cluster.training_nodes}"


def _named(recipe: Split, **changed: Any) -> Split:
    made = replace(recipe, own=False, **changed)
    wider = "" if made.staleness == recipe.staleness else f", S = {made.staleness}"
    return replace(made, name=_name(made.cluster, made.concurrency) + wider)


def _counts(asked: str) -> list[int]:
    try:
        counts = [int(each) for each in asked.split(",")]
    except ValueError as error:
        raise Refused(f"--grid {asked}: on CPUs give numbers of trials at once, as 8,16") from error
    if min(counts) < 1:
        raise Refused(f"--grid {asked}: at least 1 trial at once")
    return counts


def _asked(recipe: Split, asked: str) -> Split:
    inference, colon, training = asked.partition(":")
    if not colon or not (inference.strip().isdigit() and training.strip().isdigit()):
        raise Refused(f"--grid {asked}: give nodes as INFERENCE:TRAINING, 10:4 for one")
    try:
        return _named(recipe, cluster=_with(recipe.cluster, int(inference), int(training)))
    except ValueError as error:
        raise Refused(f"--grid {asked}: {error}") from error


def _around(recipe: Split) -> Iterator[Split]:
    """The same nodes split otherwise, nearest first; then other numbers of inference nodes, since
    engines are what is added until the trainer waits no more."""
    cluster = recipe.cluster
    inference, training = cluster.inference_nodes, cluster.training_nodes
    whole = inference + training
    others = (nodes for nodes in range(1, whole) if nodes != inference)
    same = sorted(others, key=lambda nodes: (abs(nodes - inference), nodes))
    halves = [max(1, round(inference * each)) for each in (0.5, 0.75, 1.25, 1.5, 2)]
    wanted = [(each, whole - each) for each in same][:5] + [(each, training) for each in halves]
    for nodes, trainers in wanted:
        try:
            yield _named(recipe, cluster=_with(cluster, nodes, trainers))
        except ValueError:
            continue


def _with(cluster: ClusterConfig, inference: int, training: int) -> ClusterConfig:
    """As many engines of the same size as fit."""
    engines = inference * cluster.gpus_per_node // cluster.engine_tp
    if engines < 1:
        raise ValueError(f"an engine of {cluster.engine_tp} GPUs needs more than {inference} nodes")
    return replace(cluster, inference_nodes=inference, training_nodes=training, engines=engines)
