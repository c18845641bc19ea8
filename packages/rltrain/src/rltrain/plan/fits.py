# SPDX-License-Identifier: Apache-2.0
"""Whether a live run fits where it is asked for: memory of a rank, an engine and this machine, and
what a day leaves on the disk.

Contract: nothing is started. What is wanted is reckoned from the model's config and the settings;
where it is not known what there is, that is said. Activations are not in it: they grow with
batch.micro_batch_tokens, and a first step shows them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rltrain.loop.settings import Settings
from rltrain.loop.types import LiveWork
from rltrain.plan.assumptions import GIB, GPUS, Assumptions
from rltrain.plan.memory import parameters
from rltrain.plan.model import config_of
from rltrain.plan.plan import Asked, Plan, Tables, planned
from rltrain.rollout.ground import OBJECTS_BYTES

MIB: Final = 2**20
MOMENTS: Final = 2
"""Of Adam's, of each parameter that is trained, in the precision that weights are kept in."""
PROCESSES: Final = 2.0 * GIB
"""Of an engine on a CPU beside weights and KV: three processes that hold torch and vLLM. Measured
were 2.0 GiB."""
RANK: Final = 0.6 * GIB
"""Of a rank beside its tensors, and of the driver. Measured were 0.54 and 0.56 GiB."""
TRIAL: Final = 40 * MIB
"""Its process and its box's. Measured were 16 trials with 309 MiB, and what boxes keep in memory
comes to that."""
A_TOKEN: Final = 4.2
"""Bytes in a store: benchmarks/bar03_trajectory_store.py."""
A_TRAJECTORY: Final = 8_000
"""Of one, beside its tokens: calls, requests, phases, verdict."""
DAY_H: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """One thing that something must fit in."""

    what: str
    wants: float
    """Bytes."""
    has: float | None
    """None where it cannot be known from here."""
    of: str
    """What it is made of."""

    @property
    def fits(self) -> bool:
        """As far as it is known."""
        return self.has is None or self.wants <= self.has


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """What there is."""

    memory: float
    """Bytes that this machine has free."""
    disk: float
    """The same of the file system of the run."""

    @classmethod
    def here(cls, root: Path | None) -> Where:
        """Of this machine; without a run's directory, of the one that this is called in."""
        place = root or Path()
        while not place.exists():
            place = place.parent
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
        found = dict(each.split(":") for each in lines)
        return cls(
            memory=int(found["MemAvailable"].split()[0]) * 1024,
            disk=float(shutil.disk_usage(place).free),
        )


def rooms(work: LiveWork, where: Where) -> tuple[Room, ...]:
    """What a run wants and what there is.

    Raises:
        Refused: an engine's weights leave no room for KV.
    """
    settings = work.settings
    tables = Tables(
        batch=settings.batch,
        buffer=settings.buffer,
        rollout=work.rollout,
        cluster=work.cluster,
        checkpointing=settings.policy.checkpointing,
    )
    asked = Asked(
        name=work.tasks.name,
        tables=tables,
        config=config_of(settings.policy.path),
        told=Assumptions(),
        fixed=frozenset(),
    )
    found, tensors = planned(asked), _tensors(settings)
    kept = settings.checkpoint.keep
    memory = _memory(found, tensors, where)
    return (*_of_gpus(found, tensors), memory, *_disk(found, tensors, where, kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensors:
    """Bytes of the trainer's, over all ranks."""

    weights: float
    gradients: float
    moments: float

    @property
    def all(self) -> float:
        """What a step needs, but for activations."""
        return self.weights + self.gradients + self.moments

    @property
    def kept(self) -> float:
        """What a checkpoint has."""
        return self.weights + self.moments


def _tensors(settings: Settings) -> Tensors:
    """Of a policy; where only LoRA's matrices are trained, what is theirs is left out as small."""
    policy = settings.policy
    weights = parameters(config_of(policy.path)) * (8.0 if policy.dtype == "float64" else 4.0)
    trained = 0.0 if policy.lora else weights
    return Tensors(weights=weights, gradients=trained, moments=MOMENTS * trained)


def _of_gpus(plan: Plan, tensors: Tensors) -> Iterator[Room]:
    cluster, told = plan.asked.tables.cluster, plan.asked.told
    if not cluster.gpus_per_node:
        return
    has = GPUS[told.gpu].memory_gib * GIB
    away = tensors.moments if cluster.offload_optimizer else 0.0
    yield Room(
        what=f"a rank of the trainer, on {told.gpu}",
        wants=(tensors.all - away) / cluster.training_ranks,
        has=has,
        of=f"weights, gradients, moments over {cluster.training_ranks} ranks, no activations",
    )
    kv = plan.own.kv
    yield Room(
        what=f"a GPU of an engine, on {told.gpu}",
        wants=kv.layout.weights + plan.own.slots / kv.engines * kv.footprint,
        has=kv.layout.weights + kv.room,
        of=f"weights, and the KV of {plan.own.slots} trials over {kv.engines} engines",
    )


def _memory(plan: Plan, tensors: Tensors, where: Where) -> Room:
    """Each rank reads all weights into the memory of its machine once."""
    tables = plan.asked.tables
    cluster, trials = tables.cluster, tables.rollout.concurrency
    if cluster.gpus_per_node:
        ranks = min(cluster.training_ranks, cluster.gpus_per_node)
        away = tensors.moments if cluster.offload_optimizer else 0.0
        held = ranks * (tensors.weights + away / cluster.training_ranks)
        engines = 0.0
    else:
        ranks = cluster.ranks
        held = tensors.all + ranks * tensors.weights
        engines = cluster.engines * (PROCESSES + plan.own.kv.layout.weights + plan.own.kv.room)
    parts = {
        f"{ranks} ranks": held + ranks * RANK,
        f"{cluster.engines} engines": engines,
        f"{trials} trials": trials * TRIAL,
        "driver and Ray": 2 * RANK + OBJECTS_BYTES,
    }
    return Room(
        what="memory of this machine",
        wants=sum(parts.values()),
        has=None if cluster.address else where.memory,  # else it is spread over its nodes
        of=", ".join(f"{name} {value / GIB:.1f}" for name, value in parts.items() if value),
    )


def _disk(plan: Plan, tensors: Tensors, where: Where, keep: int) -> Iterator[Room]:
    kept = (keep + 2) * tensors.kept
    yield Room(
        what="disk, checkpoints",
        wants=kept,
        has=where.disk,
        of=f"{keep} that stay, the best one, and the one that is written",
    )
    batch, steps = plan.asked.tables.batch, plan.steps_per_h(plan.own) * DAY_H
    tokens = plan.population.mean("tokens")
    each = A_TRAJECTORY + tokens * A_TOKEN
    yield Room(
        what="disk, a day of trajectories",
        wants=steps * batch.prompts * batch.samples * each,
        has=max(0.0, where.disk - kept),
        of=f"{steps:,.0f} steps of {batch.prompts} x {batch.samples}, {tokens:,.0f} tokens each, as"
        " rltrain plan has it without a run to go by",
    )


def line_of(room: Room) -> str:
    """For a person."""
    has = "not known here" if room.has is None else f"{room.has / GIB:,.2f} GiB there"
    word = "fits" if room.fits else "DOES NOT FIT"
    return f"{word}  {room.what}: {room.wants / GIB:,.2f} GiB wanted, {has} ({room.of})"
