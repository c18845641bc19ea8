# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""Sampling and training at once: `live` reads as the story of a run.

Synchronous, one step off and fully asynchronous are this one loop, with a bound of 0, 1 or more on
how old a sample may be.

Contract: each accepted group is trained on once in the weights that survive, whatever was killed.
No engine is sent a request before it holds weights that were checked on it. Nothing is waited for
without an end. Whoever wants the run to end gets a checkpoint after the step that is being taken.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from envkit.crew.types import STORE
from rltrain.buffer.scheduler import Scheduler
from rltrain.buffer.types import (
    Batch,
    Cancel,
    Decision,
    DropGroup,
    Event,
    Exhausted,
    Offered,
    Passed,
    Start,
    Synced,
    TrainerFree,
    Updated,
    Wait,
)
from rltrain.loop.account import Account, figures
from rltrain.loop.attempts import Attempts
from rltrain.loop.checkpoint import Live as Kept
from rltrain.loop.directory import now
from rltrain.loop.evaluating import Evaluating
from rltrain.loop.handing import Handing
from rltrain.loop.lineage import Lineages
from rltrain.loop.numbers import Numbers
from rltrain.loop.parts import NODES, Parts, parts_of
from rltrain.loop.prompts import Prompts
from rltrain.loop.rules import Rules, Trials
from rltrain.loop.seconds import Seconds
from rltrain.loop.stopping import stop_wished
from rltrain.loop.trials import trial_id
from rltrain.loop.types import Ended, LiveTold, LiveWork, expect_ahead
from rltrain.rollout.crew import Stored
from rltrain.sync.version import WeightVersion

LOOK_S = 0.5
"""Between two looks at whether somebody wants an end, where nothing else happens."""


async def live(work: LiveWork, told: LiveTold) -> Ended:
    """Sample and train until the steps are over or somebody wants an end.

    Raises:
        Refused: it cannot be run here, or must not go on: a sync, a gate or a rule said so.
        EnginesLost, CrewsLost, ActorDied, ActorSilent: nothing can be run any more.
    """
    with stop_wished(told.line) as wished:
        async with parts_of(work, told) as parts:
            run = await Live.taken_up(work, parts, told)
            with run:
                await run.hand_on()
                await run.evaluate()
                run.begin()
                while not run.over:
                    await run.hear()
                    if wished():
                        run.stop_soon()
                return await run.end()


class Live:
    """One run, on its driver."""

    def __init__(
        self,
        work: LiveWork,
        parts: Parts,
        told: LiveTold,
        lineages: Lineages,
        kept: Kept | None,
        stored: Mapping[str, Stored],
    ) -> None:
        settings = work.settings
        self._work, self._parts, self._told, self._lineages = work, parts, told, lineages
        self._prompts = Prompts(
            tasks=work.names,
            seed=settings.run.seed,
            epochs=settings.run.epochs,
            steps=settings.run.steps,
        )
        self._steps = work.steps
        self._step = self._began = kept.step if kept else 0
        self._offered = kept.offered if kept else 0
        self._consumed = dict(kept.consumed) if kept else {}
        self._scheduler = _scheduler(work, kept)
        self._zero_s = time.monotonic() - self._scheduler.now_s
        self._attempts = Attempts(
            pool=parts.pool,
            crews=parts.crews,
            prompts=self._prompts,
            lineages=lineages,
            stored=stored,
            tell=parts.inbox.put_nowait,
            rule=Trials(settings.rules, 2 * settings.batch.prompts * settings.batch.samples),
            spawn=parts.spawn,
        )
        self._handing = Handing(work, parts, lineages, told.line)
        self._handing.remember(stored.values())
        self._evaluating = Evaluating(work, parts, lineages)
        self._rules = Rules(settings.rules)
        parts.hearers.extend((self._attempts.heard, self._evaluating.heard, self._handing.heard))
        self._held = ExitStack()
        self._training = False
        self._stopping = False
        self._wake_s: float | None = None
        self._seconds = Seconds()
        self._kept_at = self._began if kept else -1
        self._checkpoint = None
        self._last: dict[str, float] = {}

    @classmethod
    async def taken_up(cls, work: LiveWork, parts: Parts, told: LiveTold) -> Live:
        """Be where the last whole checkpoint left the run, in a lineage of its own."""
        kept = await parts.trainer.take_up()
        expect_ahead(work.stop_after, kept.step if kept else 0)
        stored = await parts.crews.stored(stores_of(work.root))
        before = Lineages.read(work.root)
        lineages = before.begun(work.root, _parent(before, kept), now())
        if before.lines:
            told.line(_resumed(lineages, kept, stored))
        return cls(work, parts, told, lineages, kept, stored)

    def __enter__(self) -> None:
        work = self._work
        self._account = self._held.enter_context(Account(work.root, self._lineages.now))
        numbers = Numbers.after(self._began, work.root, work.settings, self._told.line)
        self._numbers = self._held.enter_context(numbers)

    def __exit__(self, *raised: object) -> None:
        self._held.close()

    @property
    def over(self) -> bool:
        """Nothing is left to be done."""
        return not self._training and (self._stopping or self._step >= self._work.until)

    async def hand_on(self) -> None:
        """Every engine holds the weights, and was checked on them."""
        self._last |= await self._handing.hand_on()
        self._attempts.step = self._step

    async def evaluate(self) -> None:
        """Evaluate the weights there are, where that is due."""
        self._last |= await self._evaluating.where_due(self._step, self._steps, self._told.line)

    def begin(self) -> None:
        """What was under way is taken up, prompts are offered, and the trainer is free."""
        self._parts.spawn(self._handing.hand_to_late())
        if self.over:
            return
        under_way, ending = self._scheduler.running, self._scheduler.ending
        self._tell(Synced(version=self._scheduler.version))
        self._attempts.gone(ending)
        self._attempts.again(under_way)
        self._offer()
        self._tell(TrainerFree())

    async def hear(self) -> None:
        """Take in one thing that has happened, or that nothing did, and do what follows."""
        inbox = self._parts.inbox
        try:
            async with asyncio.timeout(LOOK_S):
                event: Event = await inbox.get()
        except TimeoutError:
            event = Passed()
        self._tell(event)
        self._told.glance(self._glance())

    def stop_soon(self) -> None:
        """Take no further step."""
        self._stopping = True

    async def end(self) -> Ended:
        """Leave a checkpoint, and say how it ended."""
        if self._step > max(self._kept_at, 0):
            await self._keep(self._scheduler.state())
        self._numbers.sync()
        return Ended(
            step=self._step,
            steps=self._steps,
            resumed_at=self._began,
            interrupted=self._step < self._steps,
            checkpoint=self._checkpoint,
            last=self._last,
        )

    # --- the scheduler ----------------------------------------------------------------------------

    def _tell(self, event: Event) -> None:
        at_s = max(self._scheduler.now_s, time.monotonic() - self._zero_s)
        for decision in self._scheduler.on(event, at_s):
            self._account.note(decision, at_s)
            self._do(decision)
        self._offer()

    def _do(self, decision: Decision) -> None:
        match decision:
            case Start():
                self._attempts.start(decision.sample)
            case Cancel():
                self._attempts.cancel(decision.sample)
            case Batch():
                self._training = True
                self._parts.spawn(self._train(decision))
            case Wait() if decision.reason == "no_prompts":
                self._stopping = True
            case DropGroup():
                self._told.line(f"{decision.group}: dropped, {decision.reason}")
            case _:
                pass

    def _offer(self) -> None:
        """Prompts, as long as it is they that are missing."""
        while self._scheduler.ceiling.binds == "prompts" and self._offered < len(self._prompts):
            self._offered += 1
            self._tell(Offered(group=self._prompts.at(self._offered - 1).name))
            if self._offered == len(self._prompts):
                self._tell(Exhausted())

    # --- a step -----------------------------------------------------------------------------------

    async def _train(self, batch: Batch) -> None:
        """Take a step, and hand its weights on before another one is taken."""
        part = self._seconds.part
        with part("gate"):
            gate = await self._handing.pass_gate()
        with part("learn"):
            told = gate | await self._learn(batch)
        self._rules.expect(self._step, told)
        self._consumed[self._step] = tuple(group.group for group in batch.groups)
        self._step += 1
        self._tell(Updated())
        if self._due():
            with part("checkpoint"):
                await self._keep(self._scheduler.state())
        with part("sync"):
            told |= await self._handing.hand_on()
        self._attempts.step = self._step
        self._tell(Synced(version=self._scheduler.version))
        self._log({**told, **with_waits(told, self._seconds.told())})
        with part("evaluate"):
            await self.evaluate()
        self._training = False
        if not self.over:
            self._tell(TrainerFree())

    async def _learn(self, batch: Batch) -> dict[str, float]:
        trials = [trial_id(each) for group in batch.groups for each in group.samples]
        samples = self._parts.crews.samples(trials)
        told = await self._parts.trainer.learn(self._step, [samples], self._lineages)
        restarted = self._attempts.restarted
        return {
            **told,
            **figures(self._scheduler, batch),
            **self._account.rates(self._scheduler),
            "rollout/reused": self._attempts.reused,
            "rollout/restarted": len(restarted),
            "rollout/restarted_tokens": sum(restarted),
        }

    def _log(self, told: dict[str, float]) -> None:
        self._last = told
        self._numbers.log(self._step, told)
        self._told.step(self._step, self._steps, told)

    def _due(self) -> bool:
        """Whether there is a checkpoint of these weights: also where they are evaluated."""
        every = self._work.settings.checkpoint.every
        last = self._step == self._steps
        return last or self._step % every == 0 or self._evaluating.due(self._step, self._steps)

    async def _keep(self, state: Mapping[str, object]) -> None:
        """Leave a checkpoint; the numbers of the steps before it are on the disk before it is."""
        self._numbers.sync()
        kept = Kept(
            lineage=self._lineages.now,
            step=self._step,
            offered=self._offered,
            consumed=self._consumed,
            scheduler=state,
        )
        self._checkpoint, lines = await self._parts.trainer.keep(
            self._step, kept, self._evaluating.best_step
        )
        self._kept_at = self._step
        for line in lines:
            self._told.line(line)

    def _glance(self) -> dict[str, object]:
        ceiling = self._scheduler.ceiling
        return {
            "step": self._step,
            "steps": self._steps,
            "training": self._training,
            "running": ceiling.running,
            "slots": ceiling.slots,
            "binds": ceiling.binds,
            "buffered": self._scheduler.buffered,
            "engines": [
                (each.name, each.state, len(each.trials)) for each in self._parts.pool.engines
            ],
            "last": self._last,
        }


def with_waits(told: Mapping[str, float], passed: Mapping[str, float]) -> dict[str, float]:
    """Seconds of a step as its driver saw them, what the trainer told of it inside: ``wait`` is all
    in which it had nothing to do, ``other`` what asking it took."""
    of_trainer = [
        value
        for name, value in told.items()
        if name.startswith("seconds/") and name not in ("seconds/other", "seconds/total")
    ]
    rest = {name: value for name, value in passed.items() if name != "seconds/learn"}
    asking = passed.get("seconds/learn", 0.0) - sum(of_trainer)
    return {**rest, "seconds/wait": passed["seconds/other"], "seconds/other": max(0.0, asking)}


def stores_of(root: Path) -> list[Path]:
    """Of every node that a run ever had."""
    return sorted((root / NODES).glob(f"*/{STORE}"))


def _scheduler(work: LiveWork, kept: Kept | None) -> Scheduler:
    settings, slots = work.settings, work.rollout.concurrency
    if kept is not None:
        return Scheduler.restored(kept.scheduler, settings.buffer, slots=slots)
    return Scheduler(
        settings.buffer,
        prompts=settings.batch.prompts,
        samples=settings.batch.samples,
        slots=slots,
    )


def _parent(before: Lineages, kept: Kept | None) -> WeightVersion | None:
    """Weights that a lineage begins from; without a checkpoint, the policy's own once more."""
    if not before.lines:
        return None
    if kept is None:
        return WeightVersion(lineage=before.now, step=0)
    return WeightVersion(lineage=kept.lineage, step=kept.step)


def _resumed(lineages: Lineages, kept: Kept | None, stored: Mapping[str, Stored]) -> str:
    return (
        f"going on from step {kept.step if kept else 0} as lineage {lineages.now};"
        f" {len(stored)} trials are stored"
    )
