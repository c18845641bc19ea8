# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""The trainer of a live run as its driver knows it: all ranks, asked together.

Contract: every question has a deadline, after which the run ends with the question's name. The
trainer does one thing at a time; who comes while it is busy waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from rltrain.loop.checkpoint import Live
from rltrain.loop.lineage import Lineages
from rltrain.loop.rank import Handed, RankHost
from rltrain.loop.types import LiveWork
from rltrain.policy.ranks import COLLECTIVE_S
from rltrain.rollout.ground import told
from rltrain.sync.canary import Checked
from rltrain.sync.types import Replica

START_S: Final = 1800.0
"""For a policy to be loaded; 400 billion parameters come from a disk."""
LEAVE_S: Final = 60.0
STEP_S: Final = 2 * COLLECTIVE_S
"""Longer than a rank waits for the others: what hangs is told by them."""


class Trainer:
    """All ranks."""

    def __init__(
        self, work: LiveWork, resources: Callable[[int], dict[str, Any]], threads: int
    ) -> None:
        """``threads`` are of each rank; 0 for as many as torch takes."""
        import ray

        actor = ray.remote(RankHost)
        self._threads = threads
        self._free = asyncio.Lock()
        self._hosts = [
            actor.options(**resources(rank)).remote(
                work.settings, work.cost, work.root, work.digest
            )
            for rank in range(work.cluster.training_ranks)
        ]

    async def start(self) -> None:
        """Load the policy on all ranks.

        Raises:
            Refused: it cannot be loaded or packed.
        """
        first = self._hosts[0]
        meeting = await told("trainer meeting", START_S, first.meeting.remote())
        ranks, threads = len(self._hosts), self._threads
        await self._all(
            "trainer start",
            START_S,
            [host.join.remote(meeting, rank, ranks, threads) for rank, host in _each(self._hosts)],
        )

    async def take_up(self) -> Live | None:
        """Be where the last whole checkpoint left the run; what it said of it."""
        return (await self._ask("restore", START_S, "take_up"))[0]

    async def learn(
        self, step: int, samples: Sequence[Any], lineages: Lineages
    ) -> dict[str, float]:
        """Take the step of this number; what it told."""
        return (await self._ask("step", STEP_S, "learn", step, samples, lineages))[0]

    async def keep(self, step: int, live: Live, spared: int | None) -> tuple[Path, list[str]]:
        """Leave a checkpoint; where, and what is to be told."""
        return (await self._ask("checkpoint", STEP_S, "keep", step, live, spared))[0]

    async def sync(
        self, replicas: Sequence[Replica], lineages: Lineages, recent: Sequence[Any]
    ) -> Handed:
        """Hand the weights there are on; see `RankHost.sync`."""
        return (await self._ask("sync", STEP_S, "sync", replicas, lineages, recent))[0]

    async def check(
        self, replicas: Sequence[Replica], lineages: Lineages, recent: Sequence[Any]
    ) -> Checked:
        """Have engines and trainer score the same; see `RankHost.check`."""
        return (await self._ask("check", STEP_S, "check", replicas, lineages, recent))[0]

    async def leave(self) -> None:
        """End its process group kindly."""
        await self._ask("end", LEAVE_S, "leave")

    async def _ask(self, what: str, seconds: float, name: str, *words: Any) -> list[Any]:
        async with self._free:
            asked = [getattr(host, name).remote(*words) for host in self._hosts]
            return await self._all(f"trainer {what}", seconds, asked)

    async def _all(self, what: str, seconds: float, asked: Sequence[Any]) -> list[Any]:
        return list(
            await asyncio.gather(
                *(told(f"{what}, rank {rank}", seconds, each) for rank, each in _each(asked))
            )
        )


def _each(items: Sequence[Any]) -> enumerate[Any]:
    return enumerate(items)
