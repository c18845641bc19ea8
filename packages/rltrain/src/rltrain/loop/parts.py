# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""What a live run is made of, brought up side by side and ended together.

Contract: inside `parts_of` trainer, engines and crews are there; afterwards none of them is, also
where one of them fails while the others start. What goes wrong beside the loop is raised in it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from envkit.agent.engine.serve import ServeOptions
from envkit.crew.types import CrewEvent, CrewOptions, Ready
from rltrain.buffer.types import Event
from rltrain.loop.agent import agent_of
from rltrain.loop.place import Places, placed
from rltrain.loop.rendering import Rendering, expect_same, of_trainer
from rltrain.loop.trainer import Trainer
from rltrain.loop.types import LiveTold, LiveWork
from rltrain.rollout.crews import Crews, Lost
from rltrain.rollout.engine import EngineAt
from rltrain.rollout.ground import Beside, Spawn, ray_cluster
from rltrain.rollout.pool import Pool, PoolOptions
from rltrain.sync.serve import SHARED_CORES, serve_arguments, serve_environment

NODES: Final = "nodes"
"""A directory a node, with its store, under a run's."""
LOGS: Final = "logs"

type Heard = CrewEvent | Lost


@dataclass(slots=True, kw_only=True)
class Parts:
    """Of a run."""

    trainer: Trainer
    pool: Pool
    crews: Crews
    inbox: asyncio.Queue[Event]
    """What the scheduler is to be told."""
    arrived: asyncio.Queue[EngineAt]
    """Engines that answer and want the weights."""
    spawn: Spawn
    """Run something beside the loop."""
    hearers: list[Callable[[Heard], None]] = field(default_factory=list[Callable[[Heard], None]])
    """Told of every event of a crew."""


@asynccontextmanager
async def parts_of(work: LiveWork, told: LiveTold) -> AsyncGenerator[Parts]:
    """Bring all up.

    Raises:
        Refused, EnvkitError: one of them cannot be started as the settings say.
    """
    async with AsyncExitStack() as stack:
        ray = stack.enter_context(ray_cluster(work.cluster.address, cpus_of(work)))
        own = 0 if work.rollout.engine_urls else work.cluster.engines
        places = stack.enter_context(placed(ray, work.cluster, own))
        beside = await stack.enter_async_context(Beside())
        arrived: asyncio.Queue[EngineAt] = asyncio.Queue()
        hearers: list[Callable[[Heard], None]] = []

        def hear(event: Heard) -> None:
            for each in hearers:
                each(event)

        threads = threads_of(work) if not work.cluster.gpus_per_node else 0
        trainer = Trainer(work, places.of_rank, threads)
        pool = Pool(_pool_options(work, places), arrived.put_nowait, told.line)
        crews = Crews(*_crews(work, places), hear, told.line)
        await stack.enter_async_context(pool.open(beside.spawn))
        starting = [beside.spawn(trainer.start()), beside.spawn(pool.all_answer())]
        ready = await stack.enter_async_context(crews.open(beside.spawn))
        expect_same(of_trainer(Path(work.settings.policy.path)), _rendering(ready))
        await asyncio.wait(starting)
        stack.push_async_callback(trainer.leave)
        told.ready(ready)
        work_beside = await stack.enter_async_context(Beside())  # ends before what it works with
        yield Parts(
            trainer=trainer,
            pool=pool,
            crews=crews,
            inbox=asyncio.Queue(),
            arrived=arrived,
            spawn=work_beside.spawn,
            hearers=hearers,
        )


def _rendering(ready: Ready) -> Rendering:
    return Rendering(tokenizer=ready.tokenizer_digest, template=ready.template_digest)


def cpus_of(work: LiveWork) -> int:
    """Of a local cluster: what is placed on it, one each."""
    cluster = work.cluster
    if cluster.gpus_per_node:
        return 0
    return cluster.training_ranks + (0 if work.rollout.engine_urls else cluster.engines)


def _pool_options(work: LiveWork, places: Places) -> PoolOptions:
    rollout, settings = work.rollout, work.settings
    on_cpu = work.cluster.gpus_per_node == 0
    tp = work.cluster.engine_tp
    arguments = (
        *serve_arguments(settings.sync),
        *(("--tensor-parallel-size", str(tp)) if tp > 1 else ()),
        *rollout.engine_arguments,
    )
    serve = ServeOptions(
        model=Path(settings.policy.path),
        python=Path(sys.executable),
        context_tokens=longest(work),
        dtype=rollout.engine_dtype,
        kv_cache_gib=rollout.kv_cache_gib,
        eager=on_cpu,
        arguments=arguments,
    )
    return PoolOptions(
        engines=work.cluster.engines,
        urls=rollout.engine_urls,
        serve=serve,
        environment={**serve_environment(settings.sync), **(own_threads(work) if on_cpu else {})},
        logs=work.root / LOGS,
        resources=places.of_engine,
    )


def threads_of(work: LiveWork) -> int:
    """Of each engine and rank where they share this machine's cores: two that want all of them wait
    for each other at every barrier."""
    shared = work.cluster.engines + work.cluster.training_ranks
    return max(1, (os.cpu_count() or 1) // shared)


def own_threads(work: LiveWork) -> dict[str, str]:
    """The environment of an engine on a CPU, which else binds a thread to every core."""
    return {
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": str(threads_of(work)),
        SHARED_CORES: "1",
    }


def longest(work: LiveWork) -> int:
    """Tokens that an engine must take: of a trial in training or in an evaluation."""
    evaluate = work.settings.evaluate
    return max(work.rollout.context_tokens, evaluate.context_tokens if evaluate else 0)


def _crews(work: LiveWork, places: Places) -> tuple[list[CrewOptions], list[dict[str, Any]]]:
    nodes = places.nodes
    share = -(-work.rollout.concurrency // len(nodes))
    options = [
        CrewOptions(
            python=work.environment_python,
            root=work.root / NODES / f"{number:03}",
            tasks=tuple(work.task_directories),
            agent=agent_of(work),
            concurrency=share,
            starts_per_s=work.rollout.starts_per_s / len(nodes),
            at_work=work.rollout.at_work or None,
            keep_trials=work.rollout.keep_trials,
            seed=work.settings.run.seed,
            chaos=Path(work.rollout.chaos) if work.rollout.chaos else None,
        )
        for number in range(len(nodes))
    ]
    return options, [*map(partial(places.of_crew), nodes)]
