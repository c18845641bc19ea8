# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""The crews of all nodes as their driver knows them: trials go out, what became of them comes in.

Contract: a trial goes to the node with the fewest. Whatever happens, each one that was begun is
heard of again once, ended or refused. Where a crew dies, another one takes its place: what ended
before that is told out of the store, and what was under way goes on where its journal says.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from envkit.crew.types import STORE, CrewEvent, CrewOptions, Ended, Ready, Refused, TrialOrder
from envkit.fault import EnvkitError
from rltrain.rollout.crew import BEGIN_S, CrewHost, ShelfHost, Stored
from rltrain.rollout.ground import ActorDied, ActorSilent, Spawn, ended, told

POLL_S: Final = 5.0
SILENT_S: Final = 60.0
OPEN_S: Final = 900.0
"""For the boxes of all tasks to be built, once."""
CLOSE_S: Final = 60.0
READ_S: Final = 300.0
LIVES: Final = 3


class CrewsLost(RuntimeError):
    """No node can run trials any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A trial that no crew could be told of, or of which none knows any more."""

    trial: str
    why: str


@dataclass(slots=True, kw_only=True)
class _Node:
    name: str
    options: CrewOptions
    resources: dict[str, Any]
    host: Any = None
    orders: dict[str, TrialOrder] = field(default_factory=dict[str, TrialOrder])
    """Of trials that are under way."""
    up: bool = False
    idle_lives: int = 0
    """Lives in a row that ended without a trial."""


class Crews:
    """All of them. ``hear`` is told every event."""

    def __init__(
        self,
        options: Sequence[CrewOptions],
        resources: Sequence[dict[str, Any]],
        hear: Callable[[CrewEvent | Lost], None],
        say: Callable[[str], None],
    ) -> None:
        self._nodes = [
            _Node(name=f"node-{number}", options=each, resources=where)
            for number, (each, where) in enumerate(zip(options, resources, strict=True))
        ]
        self._hear, self._say = hear, say
        self._where: dict[str, _Node] = {}
        self._changed = asyncio.Event()
        self._shelf: Any = None
        self._stores: dict[str, Path] = {}
        self._journals: dict[str, tuple[_Node, str]] = {}
        """Of trials that were under way under an earlier crew: whose, and the directory."""

    @asynccontextmanager
    async def open(self, spawn: Spawn) -> AsyncGenerator[Ready]:
        """Start all; gives what the first found ready.

        Raises:
            EnvkitError: one of them cannot run the tasks.
        """
        import ray

        self._shelf = ray.remote(ShelfHost).options(num_cpus=0).remote()
        ready = await asyncio.gather(*(self._start(each) for each in self._nodes))
        keeping = [spawn(self._keep(each)) for each in self._nodes]
        try:
            yield ready[0]
        finally:
            await ended(keeping)
            await asyncio.gather(*(self._close(each) for each in self._nodes))

    async def begin(self, order: TrialOrder) -> None:
        """Have a trial run, on the node with the fewest. What stands in its way is heard."""
        home = self._journals.get(order.trial_id)
        node = home[0] if home and home[0].up else await self._least()
        node.orders[order.trial_id] = order
        self._where[order.trial_id] = node
        await self._order(node, order)

    async def cancel(self, trial: str) -> None:
        """End a trial, which is heard of; one that has ended meanwhile is left alone."""
        node = self._where.get(trial)
        if node is None:
            return
        try:
            await told(f"{node.name} cancel", BEGIN_S, node.host.cancel.remote(trial))
        except (ActorDied, ActorSilent, EnvkitError) as error:
            self._say(f"{node.name}: {trial} was not cancelled: {error}")

    def samples(self, trials: Sequence[str]) -> Any:
        """A reference to the samples of trials that have ended, in this order."""
        return self._shelf.samples.remote([(self._stores[trial], trial) for trial in trials])

    def forget(self, trials: Sequence[str]) -> None:
        """Nobody will ask for them any more."""
        for each in trials:
            self._stores.pop(each, None)

    async def stored(self, places: Sequence[Path]) -> dict[str, Stored]:
        """What ended before this process, in these stores, by trial."""
        found: dict[str, Stored] = {}
        for place in places:
            rows = await told(f"{place} read", READ_S, self._shelf.stored.remote(place))
            for each in rows:
                found[each.trial_id] = each
                self._stores[each.trial_id] = place
        return found

    async def _order(self, node: _Node, order: TrialOrder) -> None:
        _, journal = self._journals.pop(order.trial_id, (node, ""))
        order = replace(order, resume_from=journal)
        try:
            await told(f"{node.name} begin", BEGIN_S, node.host.begin.remote(order))
        except (ActorDied, ActorSilent, EnvkitError) as error:
            if node.up:
                self._over(Lost(trial=order.trial_id, why=str(error)))

    # --- keeping ----------------------------------------------------------------------------------

    async def _least(self) -> _Node:
        while not (up := [each for each in self._nodes if each.up]):
            if all(each.idle_lives >= LIVES for each in self._nodes):
                raise CrewsLost("no node can run trials any more; each died several times unused")
            self._changed.clear()
            await self._changed.wait()
        return min(up, key=lambda each: len(each.orders))

    async def _start(self, node: _Node) -> Ready:
        import ray

        actor = ray.remote(CrewHost)
        node.host = actor.options(max_concurrency=64, **node.resources).remote(node.options)
        ready = await told(f"{node.name} start", OPEN_S, node.host.open.remote())
        self._journals |= {trial: (node, place) for trial, place in ready.resumable.items()}
        node.up = True
        self._changed.set()
        return ready

    async def _keep(self, node: _Node) -> None:
        """Hear what it says; where it dies, have another one take its place."""
        while True:
            why = await self._heard(node)
            node.up = False
            self._say(f"{node.name}: {why}; started anew")
            node.idle_lives = 0 if node.orders else node.idle_lives + 1
            await self._again(node)
            await self._take_up(node)

    async def _take_up(self, node: _Node) -> None:
        """What was under way under the crew before."""
        place = node.options.root / STORE
        rows = await told(f"{node.name} store", READ_S, self._shelf.stored.remote(place))
        stored = {each.trial_id: each for each in rows}
        for trial, order in list(node.orders.items()):
            if trial in stored:
                self._pass_on(node, stored[trial].ended)
            else:
                await self._order(node, order)

    async def _again(self, node: _Node) -> None:
        """A crew that opens buries what the one before it has left."""
        while node.idle_lives < LIVES:
            await self._close(node)
            try:
                await self._start(node)
            except (ActorDied, ActorSilent, EnvkitError) as error:
                node.idle_lives += 1
                self._say(f"{node.name}: did not start: {error}")
            else:
                return
        self._changed.set()
        await asyncio.Event().wait()

    async def _heard(self, node: _Node) -> str:
        """Pass on what it says, until it says nothing any more; why that is."""
        while True:
            try:
                asked = node.host.heard.remote(POLL_S)
                events = await told(f"{node.name} events", POLL_S + SILENT_S, asked)
            except (ActorDied, ActorSilent, EnvkitError) as error:
                return str(error)
            for event in events:
                self._pass_on(node, event)

    def _pass_on(self, node: _Node, event: CrewEvent) -> None:
        if isinstance(event, (Ended, Refused)):
            if event.trial not in node.orders:
                return
            if isinstance(event, Ended):
                self._stores[event.trial] = node.options.root / STORE
            self._over(event)
            return
        self._hear(event)

    def _over(self, event: Ended | Refused | Lost) -> None:
        node = self._where.pop(event.trial, None)
        if node is not None:
            node.orders.pop(event.trial, None)
            self._hear(event)

    async def _close(self, node: _Node) -> None:
        import ray

        try:
            await told(f"{node.name} close", CLOSE_S, node.host.close.remote())
        except Exception as error:  # the boundary: what does not end kindly is killed
            self._say(f"{node.name}: {type(error).__name__} while it was closed")
        ray.kill(node.host)
