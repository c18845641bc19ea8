# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""The trials of one node, wherever Ray puts it: envkit's crew, in an environment of its own.

Contract: the actor executes envkit's fork server and speaks to it over a Unix socket; every trial
is a process of that. What ended is in the node's store before it is heard of. Only the actor puts
samples among Ray's objects, and only when somebody asks for them.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from envkit.crew.client import Crew, open_crew
from envkit.crew.types import CrewOptions, Ended, Outcome, Ready, TrialOrder
from envkit.trajectory.store import Store
from rltrain.batch.sample import Sample

BEGIN_S: Final = 60.0
KEPT_TOKENS: Final = 4_000_000
"""Of samples that were read; 70 MB of them."""
GATHER_S: Final = 0.05
"""What ends together is heard of together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A trial that ended before this process."""

    trial_id: str
    reward: float | None
    valid: bool
    model_owned: bool
    """What ended it early was the model's own doing."""
    tokens: int
    sampled_tokens: int
    oldest: int
    """Weight version, the lowest over its trained tokens; -1 where none is known."""

    @property
    def ended(self) -> Ended:
        """What its crew would have said of it."""
        outcome: Outcome = "fault"
        if self.valid:
            outcome = "own" if self.model_owned else "valid"
        return Ended(
            trial=self.trial_id,
            group="",
            sample=0,
            outcome=outcome,
            reward=self.reward if self.valid else None,
            tokens=self.tokens,
            sampled_tokens=self.sampled_tokens,
            oldest=self.oldest if self.oldest >= 0 else None,
        )


class CrewHost:
    """The actor."""

    def __init__(self, options: CrewOptions) -> None:
        self._options = options
        self._stack = AsyncExitStack()
        self._crew: Crew | None = None
        self._said: asyncio.Queue[Any] = asyncio.Queue()
        self._hearing: asyncio.Task[None] | None = None

    async def open(self) -> Ready:
        """Start it; what it has found ready.

        Raises:
            EnvkitError: it cannot be started.
        """
        self._crew = await self._stack.enter_async_context(open_crew(self._options))
        self._hearing = asyncio.create_task(self._hear())
        return self._crew.ready

    async def begin(self, order: TrialOrder) -> None:
        """Have a trial run."""
        assert self._crew is not None
        await self._crew.begin(order)

    async def cancel(self, trial: str) -> None:
        """End a trial that is under way."""
        assert self._crew is not None
        await self._crew.cancel(trial)

    async def heard(self, most_s: float) -> list[Any]:
        """What was said since this was last asked; waits for something, so long at most.

        Raises:
            EnvkitError: the crew has ended.
        """
        found: list[Any] = []
        try:
            async with asyncio.timeout(most_s):
                found.append(await self._said.get())
                await asyncio.sleep(GATHER_S)
        except TimeoutError:
            pass
        while not self._said.empty():
            found.append(self._said.get_nowait())
        for each in found:
            if isinstance(each, BaseException):
                raise each
        return found

    async def close(self) -> None:
        """End it and all that it started."""
        if self._hearing is not None:
            self._hearing.cancel()
        await self._stack.aclose()

    async def _hear(self) -> None:
        assert self._crew is not None
        try:
            async for event in self._crew.events():
                self._said.put_nowait(event)
        except Exception as error:  # the boundary: whoever asks next is told
            self._said.put_nowait(error)


class ShelfHost:
    """The actor that reads stores. Apart from the crew's, so that reading delays no event."""

    def __init__(self) -> None:
        self._stores: dict[Path, Store] = {}
        self._read: OrderedDict[str, Sample] = OrderedDict()
        """Lately, the last at the end: what is trained on is scored again soon."""
        self._tokens = 0

    def samples(self, wanted: Sequence[tuple[Path, str]]) -> list[Sample]:
        """Those trajectories, as a trainer takes them.

        Raises:
            TrajectoryError: one is not there, or damaged.
        """
        for place in {place for place, trial in wanted if trial not in self._read}:
            self._store(place).refresh()
        return [self._sample(place, trial) for place, trial in wanted]

    def stored(self, place: Path) -> list[Stored]:
        """What there is in a store, without damaged rows."""
        if not place.is_dir():
            return []
        store = self._store(place)
        store.refresh()
        return [found for each in store.heads if (found := _stored(store, each.trajectory_id))]

    def _store(self, place: Path) -> Store:
        if place not in self._stores:
            self._stores[place] = Store(place)
        return self._stores[place]

    def _sample(self, place: Path, trial: str) -> Sample:
        if (found := self._read.get(trial)) is None:
            found = self._read[trial] = Sample.of(self._store(place).read(trial))
            self._tokens += len(found)
        self._read.move_to_end(trial)
        while self._tokens > KEPT_TOKENS and len(self._read) > 1:
            self._tokens -= len(self._read.popitem(last=False)[1])
        return found


def _stored(store: Store, trial: str) -> Stored | None:
    from envkit.trajectory.errors import TrajectoryError

    try:
        row = store.read(trial)
    except TrajectoryError:
        return None
    stream, outcome = row.episode.stream, row.outcome
    versions = stream.weight_version[stream.loss_mask]
    return Stored(
        trial_id=trial,
        reward=outcome.reward,
        valid=outcome.reward_valid,
        model_owned=outcome.fault is not None and outcome.fault.owner == "model",
        tokens=len(stream.token_ids),
        sampled_tokens=len(versions),
        oldest=int(versions.min()) if len(versions) else -1,
    )
