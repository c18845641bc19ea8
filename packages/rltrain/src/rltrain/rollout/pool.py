# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""The engines of a run: started, watched, replaced, and which trial goes to which.

Contract: a trial stays with the engine that it was given, the least loaded of those that are ready.
An engine is ready once somebody has said that it holds the current weights, each time it was
started. One that dies or hangs is started anew; one that does so `LIVES` times without having been
ready in between ends the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from envkit.agent.engine.serve import ServeOptions
from envkit.fault import EnvkitError
from rltrain.rollout.engine import EngineAt, EngineHost, EngineThere
from rltrain.rollout.ground import ActorDied, Spawn, ended, told

LIVES: Final = 3
STOP_S: Final = 60.0
SPARE_S: Final = 60.0
"""On top of the engine's own deadline: the actor's start, and Ray's."""

type State = Literal["starting", "bare", "ready", "gone"]
"""``bare``: it answers, and does not hold the current weights yet."""
type Arrived = Callable[[EngineAt], None]


class EnginesLost(RuntimeError):
    """No engine can be kept alive; the run cannot go on."""


@dataclass(slots=True, kw_only=True)
class Engine:
    """One of them, as it stands."""

    name: str
    host: Any
    at: EngineAt | None = None
    state: State = "starting"
    trials: set[str] = field(default_factory=set[str])
    unready: int = 0
    """Lives in a row in which it was never ready."""
    deaths: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOptions:
    """How many, and how each is started."""

    engines: int
    urls: Sequence[str] = ()
    """Of engines that are there already; then none are started."""
    serve: ServeOptions
    environment: Mapping[str, str]
    logs: Path
    resources: Callable[[int], Mapping[str, Any]]
    """Of each actor, as Ray takes them."""


class Pool:
    """All engines of a run. ``arrived`` hears of each that answers and wants the weights."""

    def __init__(self, options: PoolOptions, arrived: Arrived, say: Callable[[str], None]) -> None:
        import ray

        own, others = ray.remote(EngineHost), ray.remote(EngineThere)
        self._options, self._arrived, self._say = options, arrived, say
        hosts = [
            own.options(max_concurrency=8, **options.resources(number)).remote(
                f"engine-{number}", options.serve, options.logs, options.environment
            )
            for number in range(0 if options.urls else options.engines)
        ]
        hosts += [
            others.options(max_concurrency=8, num_cpus=0).remote(f"engine-{number}", url)
            for number, url in enumerate(options.urls)
        ]
        self._engines = {
            name: Engine(name=name, host=host)
            for number, host in enumerate(hosts)
            for name in (f"engine-{number}",)
        }
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def open(self, spawn: Spawn) -> AsyncGenerator[None]:
        """Inside, every engine is kept alive."""
        keeping = [spawn(self._keep(each)) for each in self._engines.values()]
        try:
            yield
        finally:
            await ended(keeping)
            await asyncio.gather(*(self._stop(each) for each in self._engines.values()))

    @property
    def engines(self) -> tuple[Engine, ...]:
        """As they stand."""
        return tuple(self._engines.values())

    @property
    def answering(self) -> tuple[EngineAt, ...]:
        """Those that weights can be sent to."""
        return tuple(
            each.at for each in self.engines if each.at and each.state in ("bare", "ready")
        )

    @property
    def bare(self) -> tuple[EngineAt, ...]:
        """Those that do not hold the current weights."""
        return tuple(each.at for each in self.engines if each.at and each.state == "bare")

    def replace(self, at: EngineAt) -> None:
        """Nobody knows what it holds: have it started anew."""
        engine = self._engines[at.name]
        if engine.at == at:
            self._set(engine, "starting", None)
            engine.host.stop.remote()

    async def all_answer(self) -> None:
        """Wait until each answers; the run has nothing to do before.

        Raises:
            EnginesLost: one cannot be started.
        """
        while any(each.state == "starting" for each in self.engines):
            await self._change()
        self._expect_some()

    def holds(self, at: EngineAt) -> None:
        """It holds the current weights: trials may go to it."""
        engine = self._engines[at.name]
        if engine.at == at and engine.state == "bare":
            engine.state, engine.unready = "ready", 0
            self._tell_change()

    async def route(self, trial: str) -> EngineAt:
        """The engine of a trial, which it keeps until `release`; waits until there is one.

        Raises:
            EnginesLost: there will be none.
        """
        engine = min(await self._ready(), key=lambda each: len(each.trials))
        engine.trials.add(trial)
        assert engine.at is not None
        return engine.at

    async def some_ready(self) -> tuple[EngineAt, ...]:
        """Those that trials may go to; waits until there is one.

        Raises:
            EnginesLost: there will be none.
        """
        return tuple(each.at for each in await self._ready() if each.at)

    def release(self, trial: str) -> None:
        """It needs no engine any more."""
        for each in self.engines:
            each.trials.discard(trial)

    # --- keeping ----------------------------------------------------------------------------------

    async def _keep(self, engine: Engine) -> None:
        while engine.unready < LIVES:
            engine.unready += 1
            self._set(engine, "starting", None)
            try:
                at = await self._started(engine)
            except (EnvkitError, ActorDied) as error:
                self._say(f"{engine.name}: did not start: {error}")
                continue
            self._set(engine, "bare", at)
            self._arrived(at)
            why = await self._ended(engine, at)
            engine.deaths += 1
            self._say(f"{engine.name}: {why}; started anew")
        self._set(engine, "gone", None)
        self._say(f"{engine.name}: given up after {LIVES} starts without use")

    async def _started(self, engine: Engine) -> EngineAt:
        seconds = self._options.serve.budgets.engine_start_s + SPARE_S
        return await told(f"{engine.name} start", seconds, engine.host.start.remote())

    async def _ended(self, engine: Engine, at: EngineAt) -> str:
        try:
            return await engine.host.ended.remote(at.life)
        except Exception as error:  # the boundary: whatever the actor died of, the engine is gone
            return f"its actor ended ({type(error).__name__})"

    async def _stop(self, engine: Engine) -> None:
        try:
            await told(f"{engine.name} stop", STOP_S, engine.host.stop.remote())
        except Exception as error:  # the boundary: what does not stop kindly ends with its actor
            self._say(f"{engine.name}: {type(error).__name__} while it was stopped")

    def _set(self, engine: Engine, state: State, at: EngineAt | None) -> None:
        engine.state, engine.at = state, at
        self._tell_change()

    async def _ready(self) -> list[Engine]:
        while not (ready := [each for each in self.engines if each.state == "ready"]):
            self._expect_some()
            await self._change()
        return ready

    def _expect_some(self) -> None:
        if all(each.state == "gone" for each in self.engines):
            raise EnginesLost(
                f"no engine can be kept alive; what they said is in {self._options.logs}"
            )

    def _tell_change(self) -> None:
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()
