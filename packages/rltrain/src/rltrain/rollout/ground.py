# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Ray: a cluster of this machine's own, or one that is there already; and what is placed on it.

Contract: a local cluster ends with the block, and with the process where that is killed. Every
question to an actor has a deadline, and an actor that is dead is told from one that is slow.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Self, cast

from rltrain.refused import Refused

OBJECTS_BYTES: Final = 512 * 2**20
"""Of a local cluster's object store: batches pass through it, not the store of trajectories."""
SETTLED: Final = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
"""Of a local cluster: it listens on loopback, and tells nobody."""


type Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


class ActorDied(RuntimeError):
    """Its process ended, and what it was asked with it."""


class ActorSilent(RuntimeError):
    """It did not answer in time."""


@contextmanager
def ray_cluster(address: str = "", cpus: int = 0) -> Generator[Any]:
    """Be connected; gives the module ``ray``. A local cluster has room for ``cpus`` at least.

    Raises:
        Refused: Ray is not installed, or no cluster is at the address.
    """
    for name, value in SETTLED.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ModuleNotFoundError as error:
        raise Refused("Ray is not installed; pip install 'rltrain[live]'") from error
    more: dict[str, Any] = {"address": address}
    if not address:
        more = {
            "object_store_memory": OBJECTS_BYTES,
            "include_dashboard": False,
            "num_cpus": max(cpus, os.cpu_count() or 1),
        }
    try:
        ray.init(log_to_driver=False, logging_level="ERROR", **more)
    except ConnectionError as error:
        raise Refused(f"cluster.address: no Ray cluster at {address}; {error}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


async def told[T](what: str, seconds: float, asked: Awaitable[T]) -> T:
    """What an actor answers.

    Raises:
        ActorDied: it is dead.
        ActorSilent: it did not answer in so many seconds.
    """
    from ray.exceptions import RayActorError, RayTaskError

    async def answer() -> T:
        return await asked

    try:
        return await asyncio.wait_for(answer(), seconds)
    except TimeoutError as error:
        raise ActorSilent(f"{what}: no answer within {seconds:g} s") from error
    except RayTaskError as error:
        cause = cast("BaseException", error.cause)
        raise cause from error
    except RayActorError as error:
        raise ActorDied(f"{what}: {' '.join(str(error).split())[:500]}") from error


class Beside:
    """What runs beside the task that entered. A failure of it is raised there, in its own name, and
    whatever still runs at the end is cancelled."""

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn[T](self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run one thing more."""
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> None:
        for task in list(self._tasks):
            task.cancel()
        try:
            await self._group.__aexit__(*raised)
        except BaseExceptionGroup as group:
            raise _first(group) from group


async def ended(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they are over."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What went wrong before all that it led to."""
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
