# SPDX-License-Identifier: Apache-2.0
"""Runs trials through the fork server: waves, a barrier, retries by policy, gauges.

Contract: one ``TrialEnded`` for every spec, said once its record is on the disk. A trial's process
that dies, hangs or leaves no attempt becomes an attempt with a fault of the harness; a record that
cannot be written is said all the same; a trial that is cut off has none. A slot is free while an
attempt waits to be run again. Closing the generator closes the fork server, and with it everything
it started; temporary files that are then still there are leaks, and are removed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from envkit.fault import Fault, Phase, classify
from envkit.pace import Pace
from envkit.preflight.attempt import Order, TaskFacts, run_attempt, task_facts
from envkit.preflight.chaos.order import Injector
from envkit.preflight.host import cores
from envkit.preflight.starts import Starts, room
from envkit.preflight.types import (
    Event,
    Leftover,
    Notice,
    RunGauges,
    RunOptions,
    TrialEnded,
    TrialPhase,
    TrialSpec,
    TrialStarted,
)
from envkit.preflight.waves import Barrier
from envkit.retry import Backoff, retry
from envkit.sandbox.channel import ChannelClosed
from envkit.sandbox.prepare import Prepared, prepare
from envkit.sandbox.reaper import remnants
from envkit.sandbox.session import Server, forkserver
from envkit.sandbox.turns import at_work
from envkit.trial.record import Attempt, TrialRecord, decided_by, write_record, write_taken
from envkit.trial.request import TrialRequest, attempt_name

LOCAL: Final = "envkit.sandbox.local:LocalEnvironment"
UNSAFE: Final = "envkit.sandbox.unsafe:UnsafeProcessEnvironment"
ENVIRONMENTS: Final = {"local": LOCAL, "unsafe-process": UNSAFE}

AGAIN: Final = Backoff(tries=2, first_s=2.0)
"""Once more for what may pass; a second failure is worth a look, not a third try."""

TEMPORARY: Final = ".tmp"
"""Under the run's directory: where everything it starts puts temporary files. No trial's name
begins with a dot."""

_GAUGE_S: Final = 0.25
_QUIET_S: Final = 2.0
"""Preparing takes no longer when all is in the cache; beyond that the user is told."""


@dataclass(slots=True)
class _Trial:
    """One spec on its way to a record."""

    spec: TrialSpec
    prepared: Prepared | Fault | None
    """None where nothing is to be prepared here; a fault where it could not be."""
    facts: TaskFacts
    earlier: tuple[Attempt, ...] = ()
    """Attempts that had ended when an earlier process of this run was killed."""
    attempts: list[Attempt] = field(init=False)
    began: float = 0.0

    def __post_init__(self) -> None:
        self.attempts = [*self.earlier]


class ForkServerLauncher:
    """`Launcher` over one fork server."""

    def __init__(self, env: str, options: RunOptions) -> None:
        self._environment = ENVIRONMENTS.get(env, env)
        self._local = self._environment == LOCAL
        self._unsafe = self._environment == UNSAFE
        self._options = options
        self._random = random.Random(options.seed)
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._slots = asyncio.Semaphore(options.concurrency)
        self._starts = Starts(
            room(options.concurrency, cores(), here=self._local),
            Pace(options.starts_per_s, self._random),
        )
        self._turns = at_work(options.turns, cores(), here=self._local)
        self._barrier = Barrier()
        self._memory_before = 0.0
        self._temporary = options.out_dir.absolute() / TEMPORARY
        self._forgotten: tuple[Leftover, ...] = ()
        self._injector = Injector.read(options.chaos) if options.chaos else None

    async def run(self, specs: Sequence[TrialSpec]) -> AsyncGenerator[Event]:
        """Run every spec; see `Launcher`."""
        preparing = asyncio.create_task(asyncio.to_thread(self._prepare_all, specs))
        await asyncio.wait([preparing], timeout=_QUIET_S)
        if not preparing.done():
            yield Notice(line="building what the tasks' boxes share; this happens once")
        trials = await preparing
        self._memory_before = _available_mib()
        wave = min(self._options.concurrency, len(trials))
        self._barrier.arm(wave if self._options.barrier else 0)
        run = self._options.run_token
        log = self._options.out_dir / "sandbox.log"
        async with (
            self._temporary_files() as tmp,
            forkserver(
                run=run,
                on_event=self._hear,
                log=log,
                tmp=tmp,
                roots=_roots(trials),
                turns=self._turns,
            ) as server,
            asyncio.TaskGroup() as group,
        ):
            gauging = group.create_task(self._gauge(server))
            work = [group.create_task(self._trial(server, trial)) for trial in trials]
            ended = 0
            try:
                while ended < len(work):
                    event = await self._events.get()
                    ended += isinstance(event, TrialEnded)
                    yield event
                with contextlib.suppress(ChannelClosed):  # every trial has said so itself
                    yield await self._gauges(server, stall=0.0)
            except GeneratorExit:  # closed from outside; the group would wrap it as an error
                for task in work:
                    task.cancel()
            gauging.cancel()

    def leftovers(self) -> Sequence[Leftover]:
        """What carries this run's token now, and the temporary files that were there at its end."""
        marked = [Leftover(kind=r.kind, what=r.what) for r in remnants(self._options.run_token)]
        return [*marked, *self._forgotten]

    @contextlib.asynccontextmanager
    async def _temporary_files(self) -> AsyncGenerator[Path]:
        """A directory for them, entered before anything is started and left when all has ended."""
        self._temporary.mkdir(parents=True, exist_ok=True)
        try:
            yield self._temporary
        finally:
            here = sorted(self._temporary.iterdir()) if self._temporary.is_dir() else []
            self._forgotten = tuple(Leftover(kind="file", what=str(path)) for path in here)
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _prepare_all(self, specs: Sequence[TrialSpec]) -> list[_Trial]:
        """Build roots and worlds once a task; one that cannot be prepared fails in its trials."""
        shared: dict[Path, tuple[Prepared | Fault | None, TaskFacts]] = {}
        for spec in specs:
            if spec.task_dir not in shared:
                facts = task_facts(spec.task_dir, self._options.budgets)
                shared[spec.task_dir] = (self._prepared(spec.task_dir), facts)
        earlier = self._options.earlier
        return [
            _Trial(spec, *shared[spec.task_dir], earlier.get(spec.trial_id, ())) for spec in specs
        ]

    def _prepared(self, task_dir: Path) -> Prepared | Fault | None:
        try:
            return prepare(task_dir) if self._local else None
        except Exception as error:  # the boundary: it is the fault of this task's trials
            return classify(error, Phase.START)

    async def _trial(self, server: Server, trial: _Trial) -> None:
        tries = AGAIN.tries - len(trial.attempts)
        try:
            if tries > 0 and (not trial.attempts or worth_another(trial.attempts[-1])):
                await retry(
                    partial(self._try, server, trial),
                    phase=Phase.RUN,
                    idempotent=True,  # every attempt starts from nothing, in a directory of its own
                    backoff=replace(AGAIN, tries=tries),
                    slot=self._slots,
                    rng=self._random,
                    fault_of=worth_another,
                )
        finally:
            self._barrier.gone(trial.spec.trial_id)
        await self._end(_record(trial))

    async def _try(self, server: Server, trial: _Trial) -> Attempt:
        await self._starts.begin(trial.spec.trial_id)
        try:
            if not trial.began:
                trial.began = time.monotonic()
                self._say(_started(trial.spec))
            attempt = await self._attempt(server, trial)
        finally:
            self._starts.done(trial.spec.trial_id)
        trial.attempts.append(attempt)
        if worth_another(attempt):
            self._keep(trial.spec, attempt)
        return attempt

    def _keep(self, spec: TrialSpec, attempt: Attempt) -> None:
        """A run that is resumed goes on with the next one; the record keeps it all the same."""
        with contextlib.suppress(OSError, TypeError):  # TypeError: text that is no Unicode
            write_taken(spec.out_dir / attempt_name(spec.trial_id, attempt.number), attempt)

    async def _end(self, record: TrialRecord) -> None:
        """The trial is over, whether its record can be kept beside it or not."""
        try:
            record.trial_dir.mkdir(parents=True, exist_ok=True)
            await asyncio.to_thread(write_record, record)
        except (OSError, TypeError) as error:  # TypeError: text that is no Unicode
            self._say(Notice(line=f"{record.trial_id}: its record is in the report only: {error}"))
        self._say(TrialEnded(record=record))

    def _say(self, event: Event) -> None:
        self._events.put_nowait(event)

    async def _attempt(self, server: Server, trial: _Trial) -> Attempt:
        if isinstance(trial.prepared, Fault):
            fault, trial.prepared = trial.prepared, None  # another attempt prepares it again
            return Attempt(number=1, started_at=time.time(), faults=(fault,))
        request = TrialRequest(
            trial_id=trial.spec.trial_id,
            attempt=len(trial.attempts) + 1,
            task_dir=trial.spec.task_dir,
            trials_dir=trial.spec.out_dir,
            agent=trial.spec.agent,
            environment=self._environment,
            budgets=self._options.budgets,
            unsafe=self._unsafe,
            load=trial.spec.load,
            expected_tools=trial.facts.expected_tools,
            agent_args=trial.spec.agent_args,
            env_args=trial.spec.env_args,
        )
        order = Order(
            request=request,
            prepared=trial.prepared,
            limit_s=trial.facts.limit_with(trial.spec.load),
            hold=self._barrier.armed,
            env={**os.environ, "TMPDIR": str(self._temporary)},
        )
        return await run_attempt(server, self._injector.amend(order) if self._injector else order)

    def _hear(self, message: dict[str, Any]) -> None:
        trial = message.get("trial", "")
        if message["event"] == "phase":
            self._say(TrialPhase(trial_id=trial, phase=message["phase"]))
        elif message["event"] == "up":
            self._barrier.up(trial)
            self._starts.done(trial)

    async def _gauge(self, server: Server) -> None:
        with contextlib.suppress(ChannelClosed):  # every trial says so itself
            while True:
                before = time.monotonic()
                await asyncio.sleep(_GAUGE_S)
                stall = time.monotonic() - before - _GAUGE_S
                await self._read_gauges(server, stall)

    async def _read_gauges(self, server: Server, stall: float) -> None:
        self._say(await self._gauges(server, stall))
        if self._barrier.completed():
            await server.channel.ask("tell", trial="*", name="go")

    async def _gauges(self, server: Server, stall: float) -> RunGauges:
        census = await server.channel.ask("census")
        return RunGauges(
            live_boxes=int(census["live"]) if self._local else self._barrier.held,
            loop_stall_ms=max(0.0, stall * 1000),
            memory_mib=max(0.0, self._memory_before - _available_mib()),
            shared_cpu_s={"runner": time.process_time(), **census["cpu_s"]},
            cpu_is_live=server.cgroup > 0 or not self._local,
        )


def _roots(trials: Sequence[_Trial]) -> list[Path]:
    """Whose interpreters are warmed before the first trial starts."""
    prepared = [trial.prepared for trial in trials]
    return sorted({p.root for p in prepared if isinstance(p, Prepared)})


def _started(spec: TrialSpec) -> TrialStarted:
    return TrialStarted(trial_id=spec.trial_id, task=spec.task_dir.name, sample=spec.sample)


def worth_another(attempt: Attempt) -> Fault | None:
    """Why to run it again; a rewarded trial never is.

    One fault that may pass is enough: what seems final beside it may be its consequence.
    """
    if attempt.reward_valid:
        return None
    passing = (f for f in attempt.faults if f.policy.retry and not f.policy.reward_valid)
    return next(passing, None)


def _record(trial: _Trial) -> TrialRecord:
    """The record of a trial; its place is its last attempt's directory."""
    last = trial.attempts[-1]
    name = attempt_name(trial.spec.trial_id, last.number)
    return TrialRecord(
        trial_id=trial.spec.trial_id,
        task=trial.spec.task_dir.name,
        sample=trial.spec.sample,
        agent=trial.spec.agent,
        attempts=tuple(trial.attempts),
        verdict="graded" if last.reward is not None else "no_verdict",
        reward=last.reward,
        reward_valid=last.reward_valid,
        fault=decided_by(last.faults),
        trial_dir=trial.spec.out_dir / name,
        seconds=_seconds(trial),
    )


def _seconds(trial: _Trial) -> float:
    """Of all attempts: by the clock, those of a killed process by their phases."""
    here = time.monotonic() - trial.began if trial.began else 0.0
    return here + sum(sum(attempt.phases.values()) for attempt in trial.earlier)


def _available_mib() -> float:
    """Memory this machine could still give, in MiB."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) / 1024
    return 0.0


def launcher(env: str, options: RunOptions) -> ForkServerLauncher:
    """The launcher for ``--env``: ``local``, ``unsafe-process`` or an import path."""
    return ForkServerLauncher(env, options)
