# SPDX-License-Identifier: Apache-2.0
"""Trials that are begun, stored and said, one by one.

Contract: an order that cannot be carried out is refused in one line; any other is one attempt, and
its end is said once: with its row durable, or, where it was cancelled, with nothing of it left. A
trial's directory stays only where it is to be kept. What ends the crew as a whole is raised by
`work`: a store that cannot be written, a fork server that is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from envkit.agent.settings import ModelSettings
from envkit.crew.place import Place, keeps, remove
from envkit.crew.resume import resumption
from envkit.crew.tasks import Tasks
from envkit.crew.tell import ended
from envkit.crew.types import (
    Begun,
    CrewEvent,
    CrewOptions,
    Ended,
    Gauges,
    Notice,
    Phase,
    Refused,
    Restarted,
    TrialOrder,
)
from envkit.fault import EnvkitError, HarnessError, ReplayDiffers
from envkit.preflight import types as said
from envkit.preflight.floor import ONCE, Floor
from envkit.preflight.temporary import TEMPORARY
from envkit.preflight.types import RunOptions, TrialSpec
from envkit.preflight.under_way import Trial
from envkit.run.rows import Ground
from envkit.run.shelf import Shelf
from envkit.trajectory.types import Trajectory
from envkit.trajectory.writer import Writer
from envkit.trial import policy
from envkit.trial.record import TrialRecord

TRIAL_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
"""A file has a name of 255 bytes, and what a trial makes adds to its own."""
GAUGES_S: Final = 5.0
SOMEWHERE: Final = "http://engine"
"""In place of the URL of an engine that is not known yet."""

type Say = Callable[[CrewEvent], None]


@dataclass(slots=True, kw_only=True)
class Crew:
    """At work in one place."""

    options: CrewOptions
    place: Place
    tasks: Tasks
    shelf: Shelf
    say: Say
    digests: dict[str, str]
    """Of the tasks of trials under way: the rows' own."""
    groups: dict[str, str]
    floor: Floor = field(init=False)
    _orders: dict[str, TrialOrder] = field(default_factory=dict[str, TrialOrder])
    _ended: asyncio.Queue[TrialRecord | None] = field(
        default_factory=asyncio.Queue[TrialRecord | None]
    )
    _resumed: dict[str, int] = field(default_factory=dict[str, int])
    """Trials that go on where they were killed, and the tokens that they had come to."""
    _unwanted: set[str] = field(default_factory=set[str])
    """Of these, those that are not to start over."""
    _gauged: float = 0.0
    _removing: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    def __post_init__(self) -> None:
        asked = self.options
        run = RunOptions(
            concurrency=asked.concurrency,
            out_dir=self.place.root,
            run_token=self.place.run_token,
            barrier=False,
            seed=asked.seed,
            starts_per_s=asked.starts_per_s,
            turns=asked.at_work,
            budgets=asked.budgets,
            chaos=asked.chaos,
        )
        self.floor = Floor(asked.env, run, self._hear, again=ONCE)

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[asyncio.Task[None]]:
        """Trials may begin; with the task that stores them, which ends before only by an error."""
        storing = asyncio.create_task(self.shelf.write(self._ended, self._stored))
        try:
            preload = [(policy.PRELOAD, policy.preload_of(self.options.agent))]
            async with self.floor.open(roots=self.tasks.roots, preload=preload):
                yield storing
        finally:
            self._ended.put_nowait(None)
            await asyncio.wait({storing, *self._removing})

    def begin(self, order: TrialOrder) -> None:
        """Run a trial, or say why not."""
        try:
            self._check(order)
            trial = self._trial(order)
        except EnvkitError as error:
            self.say(Refused(trial=order.trial_id, line=str(error)))
            return
        self._orders[order.trial_id] = order
        if order.resume_from:
            trial = self._resuming(order, trial)
        self.floor.begin(trial)

    def _resuming(self, order: TrialOrder, trial: Trial) -> Trial:
        """The trial, going on where it was killed, unless it is known already that it cannot."""
        known = resumption(order.resume_from)
        if known.unable:
            self.say(Restarted(trial=order.trial_id, tokens=known.tokens, line=known.unable))
            return trial
        self._resumed[order.trial_id] = known.tokens
        args = {**trial.spec.agent_args, "resume_from": order.resume_from}
        return replace(trial, spec=replace(trial.spec, agent_args=args))

    def cancel(self, trial_id: str) -> None:
        """End a trial; one that has ended, or never began, is left as it is."""
        if not self.floor.cancel(trial_id) and trial_id in self._resumed:
            self._unwanted.add(trial_id)  # it may be about to start over

    def _check(self, order: TrialOrder) -> None:
        """Raises HarnessError where its name is none that a trial can have."""
        name = order.trial_id
        if not TRIAL_ID.fullmatch(name):
            raise HarnessError(
                f"trial {name!r}: is no name; take letters, digits, '.', '_' and '-', at most 120"
            )
        if name in self._orders or name in self.shelf:
            what = "is under way" if name in self._orders else "has a row in the store"
            raise HarnessError(f"trial {name}: {what}; give another attempt another id")

    def _trial(self, order: TrialOrder) -> Trial:
        name = order.trial_id
        known = self.tasks.find(order.task)
        args = agent_args(self.options.agent, order)
        ModelSettings.read(**args)
        self.digests[name], self.groups[name] = known.digest, order.group_id
        spec = TrialSpec(
            trial_id=name,
            task_dir=known.directory,
            sample=order.sample,
            agent=policy.NAME,
            out_dir=self.place.trials,
            env=self.options.env,
            agent_args=args,
            env_args=self.options.env_args,
        )
        return Trial(spec, *known.take())

    def _hear(self, event: said.FloorEvent) -> None:
        match event:
            case said.TrialStarted(trial_id=name):
                self.say(Begun(trial=name, at=time.time()))
            case said.TrialPhase(trial_id=name, phase=phase):
                self.say(Phase(trial=name, phase=phase, at=time.time()))
            case said.TrialEnded(record=record) if self._differs(record):
                self._over_again(record)
            case said.TrialEnded(record=record):
                self._ended.put_nowait(record)
            case said.TrialCancelled(trial_id=name):
                self._aside(self._cancelled(name))
            case said.Notice(line=line):
                self.say(Notice(line=line))
            case said.RunGauges() as gauges:
                self._gauge(gauges)

    def _differs(self, record: TrialRecord) -> bool:
        code = record.fault.code if record.fault else ""
        return record.trial_id in self._resumed and code == ReplayDiffers.__name__

    def _over_again(self, record: TrialRecord) -> None:
        """In a sandbox of its own; nothing of the attempt that failed is left in its way."""
        name, line = record.trial_id, record.fault.message if record.fault else ""
        if name in self._unwanted:
            self._aside(self._cancelled(name))
            return
        aside = self.place.root / TEMPORARY / f"{name}.differs"
        with contextlib.suppress(OSError):  # it may never have been made
            record.trial_dir.rename(aside)
        self._aside(asyncio.to_thread(_remove_all, [aside]))
        self.say(Restarted(trial=name, tokens=self._resumed.pop(name), line=line))
        self.floor.begin(self._trial(self._orders[name]))

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._removing.add(task)
        task.add_done_callback(self._removing.discard)

    def _gauge(self, read: said.RunGauges) -> None:
        now = time.monotonic()
        if now - self._gauged < GAUGES_S:
            return
        self._gauged = now
        self.say(
            Gauges(
                under_way=self.floor.under_way,
                acting=self.floor.acting,
                starting=self.floor.starting,
                live=read.live_boxes,
                memory_mib=read.memory_mib,
                stall_ms=read.loop_stall_ms,
            )
        )

    async def _stored(self, records: Sequence[TrialRecord], rows: Sequence[Trajectory]) -> None:
        gone = {row.identity.trajectory_id for row in rows if not self._keeps(row)}
        places = [record.trial_dir for record in records if record.trial_id in gone]
        await asyncio.to_thread(_remove_all, places)
        for row in rows:
            self._forget(row.identity.trajectory_id)
            self.say(ended(row))
        for line in self.shelf.damage:
            self.say(Notice(line=line))
        self.shelf.damage.clear()

    def _keeps(self, row: Trajectory) -> bool:
        return keeps(self.options.keep_trials, faulted=not row.outcome.reward_valid)

    async def _cancelled(self, name: str) -> None:
        await asyncio.to_thread(_remove_all, [self.place.trials / name])
        order = self._forget(name)
        self.say(Ended(trial=name, group=order.group_id, sample=order.sample, outcome="cancelled"))

    def _forget(self, name: str) -> TrialOrder:
        self.digests.pop(name)
        self.groups.pop(name)
        self._resumed.pop(name, None)
        self._unwanted.discard(name)
        return self._orders.pop(name)


def crew_of(
    options: CrewOptions, place: Place, tasks: Tasks, writer: Writer, ground: Ground, say: Say
) -> Crew:
    """A crew whose rows stand on this ground."""
    digests, groups = dict[str, str](), dict[str, str]()
    mine = Ground(
        identity=ground.identity,
        limits=ground.limits,
        tasks=digests,
        groups=groups,
        model_digest=ground.model_digest,
    )
    return Crew(
        options=options,
        place=place,
        tasks=tasks,
        shelf=Shelf(writer, mine),
        say=say,
        digests=digests,
        groups=groups,
    )


def agent_args(agent: Mapping[str, Any], order: TrialOrder) -> dict[str, Any]:
    """Keyword arguments of an order's agent."""
    args = {"journal": True, **agent, **order.settings}
    engine: Any = args.get("engine") or {}
    if not isinstance(engine, Mapping):
        raise HarnessError("agent: engine: its URL comes with each order; name options of it here")
    told = {"url": order.engine, "model": order.model} if order.model else {"url": order.engine}
    return {**args, "engine": {**engine, **told}}


def settings_of(options: CrewOptions) -> ModelSettings:
    """What all its agents have in common. Raises HarnessError where a setting means nothing."""
    nobody = TrialOrder(trial_id="", group_id="", sample=0, task="", engine=SOMEWHERE)
    args = agent_args(options.agent, nobody)
    if "tokenizer" not in args:
        raise HarnessError("agent: names no tokenizer; name the directory of the model's")
    return ModelSettings.read(**args)


def _remove_all(places: Sequence[Path]) -> None:
    for each in places:
        remove(each)
